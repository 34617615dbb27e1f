"""Values of every type, and plans that DuckDB makes of scans."""

import datetime
import math
from decimal import Decimal

import duckdb
import pytest

import flugs
from conftest import make

COLUMNS = {"b": flugs.boolean, "i": flugs.int32, "l": flugs.int64, "x": flugs.double,
           "d": flugs.decimal(2), "day": flugs.date, "ts": flugs.timestamp, "s": flugs.string,
           "y": flugs.binary}
TYPES = ["BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(18,2)", "DATE", "TIMESTAMP", "VARCHAR",
         "BLOB"]
ROWS = [
    (True, 2**31 - 1, 2**63 - 1, 1.5, Decimal("9999999999999999.99"), datetime.date(9999, 12, 31),
     datetime.datetime(2026, 11, 27, 1, 2, 3, 4), "text", b"\x00\xff"),
    (False, -2**31, -2**63, -math.inf, Decimal("-9999999999999999.99"), datetime.date(1, 1, 1),
     datetime.datetime(1, 1, 1), "", b""),
    (None,) * 9,
    (True, 0, 0, math.inf, Decimal(0), datetime.date(1970, 1, 1), datetime.datetime(1970, 1, 1),
     "exactly 12 b", b"more than twelve bytes"),
    (True, 1, 1, 5e-324, Decimal("0.01"), datetime.date(1969, 12, 31),
     datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), "größer als zwölf Bytes, \0 ∀", b"x"),
]


def in_order(rows):
    return sorted(rows, key=repr)


def test_every_type_comes_out_as_it_went_in(con, pool):
    make(pool, {"t": COLUMNS}, {"t": ROWS})
    found = con.execute(f"FROM flugs_scan('{pool}', 't')")
    assert [str(column[1]) for column in found.description] == TYPES
    assert in_order(found.fetchall()) == in_order(ROWS)


@pytest.mark.parametrize("rows", [2047, 2048, 2049, 70000])
def test_chunks_with_and_without_nulls(con, pool, rows):
    """In main and in the delta, with dictionaries and without, texts short and long."""
    columns = {"id": flugs.int64.not_null(), "n": flugs.int32, "few": flugs.string,
               "many": flugs.string}
    data = [(i, None if i // 3000 % 2 else i % 100, None if i % 7 == 0 else f"few {i % 9}",
             f"a text of row {i}") for i in range(rows)]
    with flugs.open(pool, max_bytes=1 << 28) as db:
        table = db.create_table("t", columns)
        table.insert_rows(data)
        db.merge("t")
        table.insert_rows([(rows, 5, None, "in the delta")])
    data.append((rows, 5, None, "in the delta"))
    assert con.execute(f"FROM flugs_scan('{pool}', 't') ORDER BY id").fetchall() == data
    assert con.execute(f"SELECT many, n FROM flugs_scan('{pool}', 't') ORDER BY id").fetchall() == [
        (row[3], row[1]) for row in data]


def test_a_nan_comes_out_as_one(con, pool):
    make(pool, {"t": {"x": flugs.double}}, {"t": [(math.nan,), (-0.0,), (1.0,)]})
    assert con.execute(f"SELECT count(*), sum(isnan(x)::INT) FROM flugs_scan('{pool}', 't')"
                       ).fetchall() == [(3, 1)]
    assert con.execute(f"SELECT count(*) FROM flugs_scan('{pool}', 't') WHERE x > 1e300"
                       ).fetchall() == [(1,)]


def test_a_decimal_that_duckdb_cannot_hold_is_an_error(con, pool):
    make(pool, {"t": {"d": flugs.decimal(3)}}, {"t": [(Decimal("9223372036854775.807"),)]})
    with pytest.raises(duckdb.OutOfRangeException, match="9223372036854775.807 has more digits"):
        con.execute(f"FROM flugs_scan('{pool}', 't')").fetchall()


def test_an_empty_table_has_its_columns(con, pool):
    make(pool, {"t": COLUMNS}, {"t": []})
    found = con.execute(f"FROM flugs_scan('{pool}', 't')")
    assert [column[0] for column in found.description] == list(COLUMNS)
    assert found.fetchall() == []
    assert con.execute(f"SELECT count(*) FROM flugs_scan('{pool}', 't')").fetchall() == [(0,)]


def numbers(con, pool, count=5000):
    make(pool, {"t": {"id": flugs.int64, "g": flugs.int32, "name": flugs.string}},
         {"t": [(i, i % 10, f"name {i % 1000}") for i in range(count)]})
    con.execute(f"CREATE TABLE n AS FROM flugs_scan('{pool}', 't')")
    return f"flugs_scan('{pool}', 't')"


# DuckDB takes these plans apart and puts parts of them together again: what was pushed into a scan
# must neither get lost nor reach another scan.
PLANS = [
    "SELECT (SELECT sum(id) FROM {t} WHERE g = 1), (SELECT sum(id) FROM {t} WHERE g = 2)",
    "SELECT (SELECT sum(id) FROM {t} WHERE g = 1), (SELECT sum(id) FROM {t})",
    "SELECT sum(id) FROM {t} WHERE g = 1 UNION ALL SELECT sum(id) FROM {t} WHERE g = 3",
    "SELECT g, sum(id) FROM {t} WHERE g < 3 GROUP BY g INTERSECT "
    "SELECT g, sum(id) FROM {t} WHERE g > 1 GROUP BY g",
    "WITH c AS (SELECT * FROM {t} WHERE g = 1) SELECT * FROM c a JOIN c b USING (id) "
    "ORDER BY id LIMIT 20",
    "WITH c AS NOT MATERIALIZED (SELECT * FROM {t} WHERE g < 4) SELECT count(*), sum(b.id) "
    "FROM c a JOIN c b USING (id) WHERE a.g = 1",
    "WITH c AS NOT MATERIALIZED (SELECT * FROM {t}) SELECT (SELECT sum(id) FROM c WHERE g = 1), "
    "(SELECT sum(id) FROM c WHERE g = 2), (SELECT sum(id) FROM c WHERE id IN (5, 6, 4711))",
    "WITH c AS NOT MATERIALIZED (SELECT * FROM {t} WHERE g < 7), d AS NOT MATERIALIZED "
    "(SELECT a.id, a.g FROM c a JOIN c b USING (id) WHERE b.g > 2) "
    "SELECT count(*), sum(x.id) FROM d x JOIN d y USING (id) WHERE x.g = 3 AND y.id < 4000",
    "SELECT id, count(*) OVER (PARTITION BY name) FROM {t} WHERE g = 1",
    "SELECT id, g, sum(id) OVER (PARTITION BY g) FROM {t} WHERE name = 'name 7'",
    "SELECT g, name, count(*) FROM {t} WHERE g < 2 GROUP BY GROUPING SETS ((g), (name), (g, name))",
    "SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id + 1 WHERE a.g = 3 AND b.name = 'name 2'",
    "SELECT id FROM {t} a WHERE g = (SELECT max(g) FROM {t} b WHERE b.name = a.name AND b.g < 5)",
    "SELECT id FROM {t} WHERE g = 1 AND id NOT IN (SELECT id FROM {t} WHERE name LIKE 'name 1%')",
    "SELECT * FROM {t} WHERE g = 1 ORDER BY id DESC LIMIT 5",
    "SELECT count(*) FROM {t}, {t} u WHERE u.id < 3",
    "SELECT count(DISTINCT name), max(id) FROM {t} WHERE id > 17 AND id < 3000",
    "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT max(id) + 1 FROM r, {t} WHERE id = n "
    "AND n < 30 GROUP BY n) SELECT count(*) FROM r",
]


@pytest.mark.parametrize("threads", [1, 3])
def test_plans_give_what_duckdbs_own_table_gives(con, pool, threads):
    scan = numbers(con, pool)
    con.execute(f"SET threads = {threads}")
    for plan in PLANS:
        wanted = con.execute(plan.format(t="n")).fetchall()
        assert in_order(con.execute(plan.format(t=scan)).fetchall()) == in_order(wanted), plan


def test_a_prepared_statement_runs_again_and_sees_new_rows(con, pool):
    scan = numbers(con, pool, 100)
    con.execute(f"PREPARE q AS SELECT count(*), sum(id) FROM {scan} WHERE g = $1 AND id >= 10")
    for g in (1, 2, 1):
        assert con.execute(f"EXECUTE q({g})").fetchall() == [(9, sum(range(10 + g, 100, 10)))]
    con.execute(f"PREPARE two AS SELECT (SELECT count(*) FROM {scan}), (SELECT count(*) FROM "
                f"{scan} WHERE g = 1)")
    for _ in range(3):
        assert con.execute("EXECUTE two").fetchall() == [(100, 10)]


def test_names_of_columns_that_differ_in_case_only(con, pool):
    make(pool, {"t": {"a": flugs.int64, "A": flugs.int64}}, {"t": [(1, 2)]})
    found = con.execute(f"FROM flugs_scan('{pool}', 't') WHERE A_1 = 2")
    assert [column[0] for column in found.description] == ["a", "A_1"]
    assert found.fetchall() == [(1, 2)]


def test_a_view_and_a_copy_of_the_table(con, pool):
    scan = numbers(con, pool, 1000)
    con.execute(f"CREATE VIEW v AS SELECT id, name FROM {scan} WHERE g = 4")
    assert con.execute("SELECT count(*), min(name) FROM v WHERE id < 500").fetchall() == [
        (50, "name 104")]
    con.execute("CREATE TABLE copied AS FROM v")
    assert con.execute("SELECT count(*), min(name) FROM copied").fetchall() == [(100, "name 104")]


@pytest.mark.parametrize("distinct", [50, 90_000])
def test_long_texts_of_dictionaries_stay_what_they_are(con, pool, distinct):
    """Batches share the dictionary of 50 texts; with 90,000 each has one of its own."""
    con.execute(f"COPY (SELECT i AS id, 'a long text, number ' || (i * 7919) % {distinct} AS s "
                f"FROM range(270000) t(i)) TO '{pool}/t' (FORMAT flugs, MERGE true)")
    con.execute("SET threads = 2")
    assert con.execute(f"SELECT count(*) FROM '{pool}/t' WHERE s <> 'a long text, number ' || "
                       f"(id * 7919) % {distinct}").fetchall() == [(0,)]
    assert con.execute(f"SELECT count(DISTINCT s), max(length(s)) FROM '{pool}/t'").fetchall() == [
        (distinct, 20 + len(str(distinct - 1)))]
    found = con.execute(f"SELECT id, s FROM '{pool}/t' ORDER BY s, id LIMIT 3").fetchall()
    assert [row[1] for row in found] == ["a long text, number 0"] * 3


def test_a_small_table_is_estimated_as_it_is(con, pool):
    make(pool, {"t": {"id": flugs.int64}}, {"t": [(k,) for k in range(25)]})
    plan = con.execute(f"EXPLAIN SELECT id FROM flugs_scan('{pool}', 't')").fetchall()[0][1]
    assert "~25 rows" in plan, plan
