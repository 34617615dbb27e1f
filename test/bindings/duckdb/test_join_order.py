"""What DuckDB is told of columns, and that this changes nothing but the order of joins."""

import datetime
import json
import os
from decimal import Decimal

import duckdb
import pytest

import flugs
from conftest import make
from test_scan import PLANS, in_order, numbers

INT = flugs.int32.not_null()
DISTRICTS, PARTS, LINES, ITEMS = 10, 300, 8, 2000
TABLES = {
    "orders": ({"w": INT, "d": INT, "o": INT, "c": INT}, ["w", "d", "o"]),
    "line": ({"w": INT, "d": INT, "o": INT, "n": INT, "item": INT, "amount": INT},
             ["w", "d", "o", "n"]),
    "stock": ({"w": INT, "item": INT, "supplier": INT}, ["w", "item"]),
    "supplier": ({"s": INT, "nation": INT}, ["s"]),
}
ROWS = {
    "orders": [(1, d, o, o * 7 % PARTS) for d in range(DISTRICTS) for o in range(PARTS)],
    "line": [(1, d, o, n, (o * 31 + n * 17 + d) % ITEMS, n)
             for d in range(DISTRICTS) for o in range(PARTS) for n in range(LINES)],
    "stock": [(1, item, item % 100) for item in range(ITEMS)],
    "supplier": [(s, s % 50) for s in range(100)],
}


def make_shop(pool):
    with flugs.open(pool, max_bytes=1 << 28) as db:
        for name, (columns, key) in TABLES.items():
            db.create_table(name, columns, primary_key=key).insert_rows(ROWS[name])
    return {name: f"flugs_scan('{pool}', '{name}')" for name in TABLES}


def operators(node):
    yield node
    for child in node.get("children", ()):
        yield from operators(child)


def domains(con, query):
    """The numbers of values that the plan has."""
    plan, = json.loads(con.execute(f"EXPLAIN (FORMAT json) {query}").fetchall()[0][1])
    return {int(node["extra_info"]["Estimated Cardinality"]) for node in operators(plan)
            if "DOMAIN" in node["name"].upper()}


def third(scan, other):
    """A statement in which `scan` is the third one."""
    return f"FROM (SELECT count(*) FROM {other}) a, (SELECT count(*) FROM {other}) b, {scan} x"


def test_tables_are_not_joined_by_a_part_of_a_key(con, pool):
    """District and warehouse alone would give 40 times as many rows as the largest table has."""
    scans = make_shop(pool)
    query = """
        SELECT count(*), sum(amount) FROM {supplier} s, {line} l, {orders} o, {stock} k
        WHERE l.w = o.w AND l.d = o.d AND l.o = o.o AND l.w = k.w AND l.item = k.item
          AND k.supplier = s.s AND s.nation = 7 AND l.n > o.c
          AND NOT EXISTS (SELECT * FROM {line} m WHERE m.w = l.w AND m.d = l.d AND m.o = l.o
                          AND m.amount > l.amount)"""
    for name, scan in scans.items():
        con.execute(f"CREATE TABLE {name} AS FROM {scan}")
    wanted = con.execute(query.format(**{name: name for name in TABLES})).fetchall()
    assert con.execute(query.format(**scans)).fetchall() == wanted
    text = con.execute(f"EXPLAIN (ANALYZE, FORMAT json) {query.format(**scans)}").fetchall()[0][1]
    ran, = json.loads(text)["operator"]
    assert max(node["intermediate_rows"] for node in operators(ran)) == len(ROWS["line"])


@pytest.mark.parametrize("threads", [1, 3])
def test_plans_behind_two_scans_give_what_duckdbs_own_table_gives(con, pool, threads):
    scan = numbers(con, pool)
    con.execute(f"SET threads = {threads}")
    assert domains(con, third(scan, scan)) == {10, 5000}
    for plan in PLANS:
        wanted = con.execute(plan.format(t="n")).fetchall()
        found = con.execute(f"SELECT x.* {third(f'({plan.format(t=scan)})', scan)}").fetchall()
        assert in_order(found) == in_order(wanted), plan


def test_every_type_and_name_behind_two_scans(con, folder):
    pool = os.path.join(folder, "it's a \"pool\".pool")
    columns = {"g": flugs.int32, "G": flugs.int64, 'a "b"': flugs.boolean, "it's": flugs.double,
               "select": flugs.decimal(2), "day": flugs.date, "ts": flugs.timestamp,
               "ä": flugs.string, "y": flugs.binary}
    rows = [(i % 3, None if i % 2 else i, i % 2 == 0, i / 4, Decimal(i) / 100,
             datetime.date(2026, 1, 1 + i % 20), datetime.datetime(2026, 1, 1, 0, i % 60),
             f"text {i}", b"\x00\xff") for i in range(3000)]
    make(pool, {"t 'x'": columns}, {"t 'x'": rows})
    scan = "flugs_scan('{}', 't ''x''')".format(pool.replace("'", "''"))
    assert in_order(con.execute(f"FROM {scan}").fetchall()) == in_order(rows)
    described = con.description
    assert in_order(con.execute(f"SELECT x.* {third(scan, scan)}").fetchall()) == in_order(rows)
    assert con.description == described
    assert domains(con, third(scan, scan)) == {3, 20, 3000}


def test_columns_of_one_two_and_many_values(con, pool):
    """At most four numbers, and a small table has none."""
    shares = (1, 2, 20, 21, 400, 2999)
    columns = {f"c{n}": flugs.int64 for n in shares}
    columns.update(none=flugs.int32, far=flugs.int64)
    rows = [tuple(i % n for n in shares) + (None, (i % 2) * 2**62) for i in range(4000)]
    make(pool, {"t": columns, "small": columns}, {"t": rows, "small": rows[:1000]})
    large, small = (f"flugs_scan('{pool}', '{name}')" for name in ("t", "small"))
    assert domains(con, third(large, small)) == {2, 21, 400, 4000}
    assert domains(con, third(small, large)) == set()
    assert domains(con, f"FROM {large} a, {large} b") == set()


def test_a_table_that_grows_is_looked_at_again(con, pool):
    make(pool, {"t": {"g": flugs.int32, "s": flugs.string}}, {"t": []})
    scan = f"flugs_scan('{pool}', 't')"
    assert domains(con, third(scan, scan)) == set()
    for rows, values in ((2000, 10), (2100, 200), (4200, 300)):
        con.execute(f"COPY (SELECT (i % {values})::INT AS g, 'a' AS s FROM range({rows} - "
                    f"(SELECT count(*) FROM {scan})) n(i)) TO '{pool}/t' (FORMAT flugs)")
        seen = {10, 2000} if rows == 2100 else {values, rows}
        assert domains(con, third(scan, scan)) == seen


def test_what_fails_behind_two_scans(con, pool):
    scan = numbers(con, pool)
    with pytest.raises(duckdb.IOException, match="has no table u; it has: t"):
        con.execute(f"SELECT 1 {third(f'''flugs_scan('{pool}', 'u')''', scan)}")
    with pytest.raises(duckdb.IOException, match="no such file"):
        con.execute(f"SELECT 1 {third(f'''flugs_scan('{pool}2')''', scan)}")
    with pytest.raises(duckdb.Error, match="the path of the pool is NULL"):
        con.execute("FROM flugs_scan(NULL)")
    con.execute("SET enable_external_access = false")
    with pytest.raises(duckdb.Error, match="enable_external_access"):
        con.execute(f"SELECT 1 {third(scan, 'n')}")


def text_behind_two_scans(con, pool, statement):
    """The text of a third scan. Plans of two scans of the same statement are kept."""
    for number in (1, 2):
        con.execute(f"PREPARE scan{number} AS FROM flugs_scan_once(reference := {10**9 + number}, "
                    f"statement := {statement}, pool := '{pool}', \"table\" := 't')")
    (text,), = con.execute(f"SELECT flugs_scan_text('{pool}', 't', false, {statement}::UBIGINT)"
                           ).fetchall()
    assert "UNION ALL" in text
    return text


def other_columns(db):
    db.drop_column("t", "a")
    db.add_column("t", "c", flugs.int32)


def other_names(db):
    db.rename_column("t", "a", "c")
    db.rename_column("t", "b", "a")
    db.rename_column("t", "c", "b")


def other_table(db):
    db.rename_table("t", "old")
    db.rename_table("u", "t")


@pytest.mark.parametrize("change", [other_columns, other_names, other_table])
def test_a_definition_that_changes_between_text_and_plan(con, pool, change):
    """The columns of a UNION are joined by their places: they would get each other's values."""
    columns = {"a": flugs.int32, "b": flugs.int32}
    rows = [(1, i % 7) for i in range(2000)]
    make(pool, {"t": columns, "u": columns}, {"t": rows, "u": rows})
    text = text_behind_two_scans(con, pool, 10**12)
    con.execute(text)
    assert in_order(con.fetchall()) == in_order(rows)
    con.execute("DEALLOCATE scan1")
    con.execute("DEALLOCATE scan2")
    con.execute(f"FROM flugs_close('{pool}')")
    with flugs.open(pool) as db:
        change(db)
    with pytest.raises(duckdb.Error, match="definition of table t changed while the statement was "
                                           "being planned: run it again"):
        con.execute(text)
    scan = f"flugs_scan('{pool}', 't')"
    con.execute(f"SELECT x.* {third(scan, scan)}")
    assert len(con.fetchall()) == 2000


def test_planning_reads_a_sample_of_a_large_delta(con, pool):
    make(pool, {"t": {"g": flugs.int32, "n": flugs.int64, "none": flugs.int32}},
         {"t": [(i % 10, i, None) for i in range(1001)]})
    scan = f"flugs_scan('{pool}', 't')"
    con.execute("COPY (SELECT (i % 10)::INT AS g, i AS n, NULL::INT AS none "
                "FROM range(100000) n(i)) "
                f"TO '{pool}/t' (FORMAT flugs)")
    least, middle, greatest = sorted(domains(con, third(scan, scan)))
    assert (least, middle) == (1, 10)
    assert greatest >= 100_000
    con.execute(f"FROM flugs_close('{pool}')")
    with flugs.open(pool) as db:
        db.merge("t")
    assert sorted(domains(con, third(scan, scan)))[:2] == [1, 10]
