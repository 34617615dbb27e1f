"""COPY ... TO 'x.pool/table' (FORMAT flugs)."""

import os
import threading

import duckdb
import pytest

import flugs
from test_pools import failure

# A column of each type that DuckDB can give, and what it is then.
EVERY_TYPE = """
    SELECT i, CASE WHEN i % 5 <> 0 THEN i % 2 = 0 END AS flag, (i % 100)::TINYINT AS tiny,
        (i % 200)::UTINYINT AS utiny, i::SMALLINT AS small, i::USMALLINT AS usmall,
        CASE WHEN i % 3 <> 0 THEN (i - 50)::INTEGER END AS number, i::UINTEGER AS unumber,
        (i * 1000000007)::BIGINT AS large, (i / 8)::FLOAT AS float, (i / 3)::DOUBLE AS double,
        (i / 4)::DECIMAL(4,1) AS d4, (i / 4)::DECIMAL(9,2) AS d9, (i / 4)::DECIMAL(18,3) AS d18,
        (i / 4)::DECIMAL(38,4) AS d38, DATE '2026-11-27' + i::INTEGER AS day,
        TIMESTAMP '2026-11-27 01:02:03.456789' + i * INTERVAL 1 HOUR AS moment,
        CASE WHEN i % 7 <> 0 THEN 'text ' || i END AS short, repeat('long ', i % 9) AS long,
        ('\\x00\\xff' || i)::BLOB AS bytes
    FROM range(3000) t(i)"""


def rows_of(con, query):
    return con.execute(query).fetchall()


def test_every_type_goes_in_and_comes_out(con, pool):
    con.execute(f"CREATE TABLE own AS {EVERY_TYPE}")
    assert rows_of(con, f"COPY own TO '{pool}/t' (FORMAT flugs, KEY 'i', MAX_BYTES 268435456)"
                   ) == [(3000,)]
    assert rows_of(con, f"FROM '{pool}/t' ORDER BY i") == rows_of(con, "FROM own ORDER BY i")
    types = {row[0]: row[1] for row in rows_of(con, f"DESCRIBE FROM '{pool}/t'")}
    assert types == {
        "i": "BIGINT", "flag": "BOOLEAN", "tiny": "INTEGER", "utiny": "INTEGER", "small": "INTEGER",
        "usmall": "INTEGER", "number": "INTEGER", "unumber": "BIGINT", "large": "BIGINT",
        "float": "DOUBLE", "double": "DOUBLE", "d4": "DECIMAL(18,1)", "d9": "DECIMAL(18,2)",
        "d18": "DECIMAL(18,3)", "d38": "DECIMAL(18,4)", "day": "DATE", "moment": "TIMESTAMP",
        "short": "VARCHAR", "long": "VARCHAR", "bytes": "BLOB"}
    con.close()
    with flugs.open(pool, create=False) as db:
        assert db["t"].get(8)["short"] == "text 8"
        assert len(list(db["t"].rows())) == 3000


def test_copy_adds_to_a_table_by_the_names_of_columns(con, pool):
    with flugs.open(pool, max_bytes=1 << 28) as db:
        db.create_table("t", {"id": flugs.int64.auto_increment(), "name": flugs.string,
                              "n": flugs.decimal(2).default(5)}, primary_key="id")
    con.execute(f"COPY (SELECT 'x' AS NAME) TO '{pool}/t' (FORMAT flugs)")
    con.execute(f"COPY (SELECT 7::TINYINT AS n, 'y' AS name) TO '{pool}/t' "
                "(FORMAT flugs, KEY 'id')")
    assert rows_of(con, f"SELECT name, n FROM '{pool}/t' ORDER BY id") == [("x", 5), ("y", 7)]
    assert "table t: no column 'other', it has id, name, n" in failure(
        con, f"COPY (SELECT 1 AS other) TO '{pool}/t' (FORMAT flugs)")
    assert "table t exists, with another primary key than KEY" in failure(
        con, f"COPY (SELECT 'z' AS name) TO '{pool}/t' (FORMAT flugs, KEY 'name')")
    assert "constraint violated" in failure(
        con, f"COPY (SELECT 'text' AS n) TO '{pool}/t' (FORMAT flugs)")


def test_a_copy_that_fails_leaves_nothing(con, pool):
    repeated = "SELECT i % 5000 AS id, i AS n FROM range(10000) t(i)"
    con.execute("SET threads = 1")
    message = failure(con, f"COPY ({repeated}) TO '{pool}/t' (FORMAT flugs, KEY (id))")
    assert "row 5000: table t, key primary: id = 0 exists" in message
    assert rows_of(con, f"FROM flugs_tables('{pool}')") == []
    con.execute(f"COPY (SELECT 1 AS id, 2 AS n) TO '{pool}/t' (FORMAT flugs, KEY 'id')")
    failure(con, f"COPY ({repeated} WHERE i > 1) TO '{pool}/t' (FORMAT flugs)")
    assert rows_of(con, f"FROM '{pool}/t'") == [(1, 2)]
    # With commits in between, the rows before them stay.
    failure(con, f"COPY ({repeated}) TO '{pool}/u' (FORMAT flugs, KEY 'id', COMMIT_ROWS 2048)")
    count = rows_of(con, f"SELECT count(*) FROM '{pool}/u'")[0][0]
    assert 2048 <= count < 5000 and count % 2048 == 0


def test_types_and_options_that_are_refused(con, pool):
    for query, reason in [
            ("SELECT 1::HUGEINT AS h", "column h: flugs has no type for HUGEINT; cast it to"),
            ("SELECT [1] AS l", "column l: flugs has no type for INTEGER[]"),
            ("SELECT TIME '01:02:03' AS t", "column t: flugs has no type for TIME"),
            ("SELECT 1::UBIGINT AS u", "column u: flugs has no type for UBIGINT")]:
        assert reason in failure(con, f"COPY ({query}) TO '{pool}/t' (FORMAT flugs)")
    assert "COPY has no option nothing" in failure(
        con, f"COPY (SELECT 1 AS i) TO '{pool}/t' (FORMAT flugs, NOTHING 1)")
    for target in (pool, "no_pool/t"):
        assert "COPY needs a pool and a table: write TO '" in failure(
            con, f"COPY (SELECT 1 AS i) TO '{target}' (FORMAT flugs)")
    assert not os.path.exists(pool)
    for key in ("''", "' , '"):
        assert "KEY names no column" in failure(
            con, f"COPY (SELECT 1 AS i) TO '{pool}/t' (FORMAT flugs, KEY {key})")
    assert "key primary: no column 'j'" in failure(
        con, f"COPY (SELECT 1 AS i) TO '{pool}/t' (FORMAT flugs, KEY 'j')")
    assert "row 0: table t, column d: the number is out of the range of decimal" in failure(
        con, f"COPY (SELECT 1e30::DECIMAL(38,0) AS d) TO '{pool}/t' (FORMAT flugs)")
    for digits in ("1::DECIMAL(38,18)", "-92233720368547758.07"):
        assert "has more digits than a DECIMAL(18)" in failure(
            con, f"COPY (SELECT NULL AS d UNION ALL SELECT {digits}) TO '{pool}/t' (FORMAT flugs)")
    assert rows_of(con, f"FROM flugs_tables('{pool}')") == []


def test_duckdb_never_replaces_the_file_of_a_pool(con, pool):
    con.execute(f"COPY (SELECT 1 AS id) TO '{pool}/t' (FORMAT flugs)")
    number = os.stat(pool).st_ino
    for options in ("", ", USE_TMP_FILE false"):
        assert f"write TO '{pool}/TABLE'" in failure(
            con, f"COPY (SELECT 2 AS id) TO '{pool}' (FORMAT flugs{options})")
    failure(con, f"COPY (SELECT 2 AS wrong) TO '{pool}/t' (FORMAT flugs)")
    for option in ["PER_THREAD_OUTPUT", "PARTITION_BY (id), OVERWRITE", "OVERWRITE_OR_IGNORE"]:
        try:
            con.execute(f"COPY (SELECT 3 AS id, 4 AS x) TO '{pool}/t' (FORMAT flugs, {option})")
        except duckdb.Error:
            pass
    assert os.stat(pool).st_ino == number
    assert (1,) in rows_of(con, f"FROM '{pool}/t'")
    assert os.listdir(os.path.dirname(pool)) == [os.path.basename(pool)]


def test_a_large_copy_by_several_threads_is_merged(con, pool):
    con.execute("SET threads = 3")
    con.execute(f"COPY (SELECT i AS id, i % 1000 AS g, 'name ' || i % 100 AS name FROM "
                f"range(300000) t(i)) TO '{pool}/t' (FORMAT flugs, KEY 'id', MERGE true, "
                "COMMIT_ROWS 100000)")
    assert rows_of(con, f"SELECT count(*), sum(id), count(DISTINCT name) FROM '{pool}/t'") == [
        (300000, 300000 * 299999 // 2, 100)]
    con.execute(f"COPY (SELECT id + 1000000 AS id, g FROM '{pool}/t' WHERE g < 10) TO '{pool}/t' "
                "(FORMAT flugs)")
    assert rows_of(con, f"SELECT count(*), max(id) FROM '{pool}/t'") == [(303000, 1299009)]


def test_a_failed_copy_drops_no_table_that_another_one_has_rows_in(con, pool):
    con.execute("SET threads = 1")
    con.execute(f"COPY (SELECT 1 AS id) TO '{pool}/other' (FORMAT flugs)")
    # The first COPY waits in its query until the second one has committed.
    begun, may_fail = threading.Event(), threading.Event()

    def wait(number):
        begun.set()
        assert may_fail.wait(60)
        return 0

    con.create_function("wait", wait, ["BIGINT"], "BIGINT", side_effects=True)
    failures = []
    first = threading.Thread(target=lambda: failures.append(failure(
        con, "COPY (SELECT CASE WHEN i = 5000 THEN wait(i) ELSE i END AS id FROM "
             f"range(5001) t(i)) TO '{pool}/t' (FORMAT flugs, KEY 'id')")))
    first.start()
    assert begun.wait(60)
    with con.cursor() as second:
        second.execute(f"COPY (SELECT 7000 AS id) TO '{pool}/t' (FORMAT flugs, KEY 'id')")
    may_fail.set()
    first.join()
    assert "id = 0 exists" in failures[0]
    assert rows_of(con, f"FROM '{pool}/t'") == [(7000,)]


def test_a_copy_that_failed_beside_a_reader_may_be_tried_again(con, pool):
    con.execute(f"COPY (SELECT i AS id FROM range(300000) t(i)) TO '{pool}/read' (FORMAT flugs)")
    reader = con.cursor()
    reader.execute(f"SET threads = 1; FROM '{pool}/read'")
    reader.fetchone()  # its transaction is open
    query = ("COPY (SELECT i % {} AS id FROM range(10) t(i)) TO "
             f"'{pool}/t' (FORMAT flugs, KEY 'id')")
    assert "id = 0 exists" in failure(con, query.format(9))
    assert rows_of(con, query.format(10)) == [(10,)]
    reader.close()


def test_a_copy_that_reads_its_own_pool_is_merged_later(con, pool):
    con.execute(f"COPY (SELECT i AS id FROM range(1000) t(i)) TO '{pool}/t' (FORMAT flugs)")
    for _ in range(2):
        assert rows_of(con, f"COPY (FROM '{pool}/t') TO '{pool}/u' (FORMAT flugs, MERGE true)") == [
            (1000,)]
    assert rows_of(con, f"SELECT count(*) FROM '{pool}/u'") == [(2000,)]
