"""Names of pools and tables in FROM, what goes wrong with them, and pools that a program lends."""

import ctypes
import os
import subprocess
import sys
import threading
import time

import duckdb
import pytest

import flugs
from conftest import EXTENSION, connect, make

NUMBERS = {"id": flugs.int64, "g": flugs.int32}


def two_tables(path):
    make(path, {"t": NUMBERS, "u": {"name": flugs.string}},
         {"t": [(i, i % 10) for i in range(100)], "u": [("a",), ("b",)]})


def failure(con, query):
    with pytest.raises(duckdb.Error) as caught:
        con.execute(query).fetchall()
    return str(caught.value)


def test_a_file_in_from_is_a_pool(con, pool):
    two_tables(pool)
    assert con.execute(f"SELECT count(*), sum(t.id) FROM '{pool}/t' WHERE t.g = 1").fetchall() == [
        (10, 460)]
    assert con.execute(f"SELECT x.name FROM '{pool}/u' x, '{pool}/t' WHERE t.id = 0 ORDER BY 1"
                       ).fetchall() == [("a",), ("b",)]
    assert "several tables" in failure(con, f"FROM '{pool}'")
    assert "for one of: t, u" in failure(con, f"FROM '{pool}'")
    assert f"{pool} has no table v; it has: t, u" in failure(con, f"FROM '{pool}/v'")


def test_a_pool_with_one_table_needs_no_name(con, pool):
    make(pool, {"only": NUMBERS}, {"only": [(1, 2)]})
    assert con.execute(f"SELECT test.id FROM '{pool}'").fetchall() == [(1,)]
    assert con.execute(f"FROM flugs_scan('{pool}')").fetchall() == [(1, 2)]


def test_folders_and_other_files_are_left_to_duckdb(con, folder):
    inside = os.path.join(folder, "folder.pool")
    os.mkdir(inside)
    con.execute(f"COPY (SELECT 42 AS n) TO '{inside}/x.csv'")
    assert con.execute(f"FROM '{inside}/x.csv'").fetchall() == [(42,)]
    assert "nothere" in failure(con, "FROM nothere")


def test_flugs_tables_lists_tables(con, pool):
    two_tables(pool)
    assert con.execute(f"FROM flugs_tables('{pool}')").fetchall() == [("t", 100, 2), ("u", 2, 1)]


def test_files_that_are_no_pool(con, folder, pool):
    assert "no such file" in failure(con, f"FROM '{pool}/t'")
    with open(pool, "wb") as file:
        file.write(b"no pool" * 1000)
    assert "flugs" in failure(con, f"FROM '{pool}/t'")
    assert "flugs: " in failure(con, f"FROM flugs_scan('{folder}', 't')")
    assert "is NULL" in failure(con, "FROM flugs_scan(NULL, 't')")
    assert "flugs_scan" in failure(con, f"FROM flugs_scan_once(pool := '{pool}')")


def test_damaged_pools_are_errors(con, pool):
    """Wherever the damage is, the query gives an error or an answer."""
    two_tables(pool)
    size = os.path.getsize(pool)
    with open(pool, "rb") as file:
        head = file.read(1 << 16)
    for number, offset in enumerate(range(0, len(head), 4096)):
        copy = f"{pool}.{number}.pool"
        subprocess.run(["cp", "--sparse=always", pool, copy], check=True)
        with open(copy, "r+b") as file:
            file.seek(offset)
            file.write(b"\xa5" * 512)
            file.truncate(size)
        try:
            con.execute(f"SELECT sum(id) FROM '{copy}/t'").fetchall()
        except duckdb.Error as error:
            assert "flugs: " in str(error)
        os.remove(copy)


def test_a_pool_that_is_open_elsewhere(con, pool):
    two_tables(pool)
    holder = subprocess.Popen([sys.executable, "-c", "import flugs, sys; db = flugs.open("
                               "sys.argv[1]); print('open', flush=True); sys.stdin.read()", pool],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "open\n"
    assert "busy" in failure(con, f"FROM '{pool}/t'")
    holder.communicate()
    assert con.execute(f"SELECT count(*) FROM '{pool}/t'").fetchall() == [(100,)]


def test_a_pool_is_open_until_the_instance_ends(pool):
    two_tables(pool)
    with connect() as con:
        con.execute(f"FROM '{pool}/t'").fetchall()
        with pytest.raises(flugs.Error, match="busy"):
            flugs.open(pool)
        with connect() as other:
            assert other.execute(f"SELECT count(*) FROM '{pool}/t'").fetchall() == [(100,)]
    with flugs.open(pool) as db:
        db["t"].insert((1000, 1))
    with connect() as con:
        assert con.execute(f"SELECT count(*) FROM '{pool}/t'").fetchall() == [(101,)]
        assert con.execute(f"FROM flugs_close('{pool}')").fetchall() == [(True,)]
        assert con.execute(f"FROM flugs_close('{pool}')").fetchall() == [(False,)]
        with flugs.open(pool) as db:
            db["t"].insert((1001, 1))
        assert con.execute(f"SELECT count(*) FROM '{pool}/t'").fetchall() == [(102,)]


def test_a_pool_that_is_only_read(pool):
    two_tables(pool)
    before = os.stat(pool).st_mtime_ns
    with connect() as con:
        query = f"SELECT count(*) FROM flugs_scan('{pool}', 't', read_only := true)"
        assert con.execute(query).fetchall() == [(100,)]
        # Others may read it as well.
        other = subprocess.run([sys.executable, "-c", "import flugs, sys; db = flugs.open("
                                "sys.argv[1], read_only=True); print(len(list(db['t'].rows())))",
                                pool], capture_output=True, text=True, check=True)
        assert other.stdout == "100\n"
    assert os.stat(pool).st_mtime_ns == before


def test_duckdb_may_forbid_files(pool):
    two_tables(pool)
    with connect(enable_external_access="true") as con:
        con.execute("SET enable_external_access = false")
        assert "enable_external_access" in failure(con, f"FROM flugs_scan('{pool}', 't')")
        assert "enable_external_access" in failure(con, f"FROM flugs_tables('{pool}')")


def test_the_version_at_the_end_of_the_file_is_checked(folder):
    """DuckDB compares it with its own before it loads the file."""
    other = os.path.join(folder, "flugs.duckdb_extension")
    with open(EXTENSION, "rb") as file:
        content = file.read()
    footer = content[-512:].replace(b"v2.0.0\0", b"v2.0.1\0")
    assert footer != content[-512:]
    with open(other, "wb") as file:
        file.write(content[:-512] + footer)
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as con:
        with pytest.raises(duckdb.Error, match="'v2.0.1'.*'v2.0.0'"):
            con.load_extension(other)


def test_the_extension_loads_into_many_instances(folder):
    for _ in range(3):
        with connect(os.path.join(folder, "a.duckdb")) as a, connect() as b:
            a.load_extension(EXTENSION)
            assert "flugs: " in failure(b, "FROM flugs_tables('/nowhere.pool')")


class Lender:
    """A program that has the pool open, in this process, and lends it."""

    def __init__(self, path):
        self.library = ctypes.CDLL(os.environ["FLUGS_DUCKDB_LENDER"])
        self.library.lender_open.restype = ctypes.c_void_p
        self.handle = ctypes.c_void_p(self.library.lender_open(path.encode()))
        assert self.handle

    def __getattr__(self, name):
        def call(*arguments):
            return getattr(self.library, f"lender_{name}")(
                self.handle, *(ctypes.c_int64(argument) for argument in arguments))
        return call


@pytest.fixture
def lender(pool):
    made = Lender(pool)
    ctypes.CDLL(EXTENSION).flugs_duckdb_delegate(made.library.lender_start)
    yield made
    ctypes.CDLL(EXTENSION).flugs_duckdb_delegate(None)
    made.close()


def test_a_lent_pool_is_read_while_the_program_writes(lender, pool):
    with connect() as con:
        query = f"SELECT count(*), max(id) FROM '{pool}/t'"
        assert con.execute(query).fetchall() == [(0, None)]
        assert lender.insert(0, 1000) == 0
        assert con.execute(query).fetchall() == [(1000, 999)]
        con.execute(f"PREPARE p AS {query}")
        assert con.execute("EXECUTE p").fetchall() == [(1000, 999)]
        assert lender.insert(1000, 500) == 0
        assert con.execute("EXECUTE p").fetchall() == [(1500, 1499)]
        assert lender.transactions() == 0  # no statement runs, none is left open
        lender.take_back()
        assert "no such file" in failure(con, query) or "busy" in failure(con, query)


def test_scans_of_a_statement_see_one_state(lender, pool):
    """While rows come in, ten at a time, each statement counts the same rows in all its scans."""
    stop = threading.Event()

    def write():
        first = 0
        while not stop.is_set():
            assert lender.insert(first, 10) == 0
            first += 10

    writer = threading.Thread(target=write)
    with connect() as con:
        con.execute("SET threads = 3")
        writer.start()
        seen = 0
        for _ in range(150):
            row = con.execute(
                f"SELECT (SELECT count(*) FROM '{pool}/t'), (SELECT count(*) FROM '{pool}/t' WHERE "
                f"g < 5), (SELECT count(*) FROM '{pool}/t' WHERE g >= 5), (SELECT max(id) FROM "
                f"'{pool}/t')").fetchall()[0]
            assert row[1] * 2 == row[0] and row[2] * 2 == row[0] and (row[3] or -1) + 1 == row[0]
            assert row[0] >= seen
            seen = row[0]
        stop.set()
        writer.join()
        assert seen > 0
        lender.take_back()


@pytest.mark.parametrize("change, reason", [
    ("drop_column", "column g: was changed after the query was planned"),
    ("rename", "table t was dropped or renamed after the query was planned")])
def test_a_table_that_changes_between_planning_and_running(lender, pool, change, reason):
    """The scan of t begins when the other side of the join is there."""
    with connect() as con:
        lender.insert(0, 10)
        query = f"SELECT sum(g) FROM '{pool}/t' JOIN (SELECT range % 10 AS g, count(*) FROM " \
                "range({}) GROUP BY ALL) USING (g)"
        con.execute("SET disabled_optimizers = 'join_order,build_side_probe_side'")
        assert con.execute(query.format(100)).fetchall() == [(45,)]
        failed = []
        waiting = threading.Thread(target=lambda: failed.append(failure(con, query.format(10**8))))
        waiting.start()
        time.sleep(0.1)
        assert getattr(lender, change)() == 0
        waiting.join()
        assert reason in failed[0]
        table = "other" if change == "rename" else "t"
        assert con.execute(f"SELECT sum(id) FROM '{pool}/{table}'").fetchall() == [(45,)]
        lender.take_back()


def test_the_program_closes_the_pool_while_rows_are_fetched(lender, pool):
    """In the same thread, and in another one that is in the middle of a scan."""
    with connect() as con:
        lender.insert(0, 200_000)
        con.execute("SET streaming_buffer_size = '1KB'")
        rows = con.execute(f"SELECT id FROM '{pool}/t'")
        assert len(rows.fetchmany(10)) == 10
        failed = []

        def scan():
            with con.cursor() as own:
                try:
                    while True:
                        own.execute(f"SELECT count(*) FROM '{pool}/t' WHERE g = 11").fetchall()
                except duckdb.Error as error:
                    failed.append(str(error))

        scanner = threading.Thread(target=scan)
        scanner.start()
        time.sleep(0.05)
        lender.take_back()
        scanner.join()
        assert "closed the pool" in failed[0] or "busy" in failed[0] or "flugs" in failed[0]
        try:
            rows.fetchall()
        except duckdb.Error as error:
            assert "closed the pool" in str(error)


def test_an_interrupt_ends_a_query_and_its_scans(lender, pool):
    with connect() as con:
        lender.insert(0, 100_000)
        failed = []
        query = f"SELECT count(*) FROM '{pool}/t' a, '{pool}/t' b WHERE a.id + b.id = 17"
        runner = threading.Thread(target=lambda: failed.append(failure(con, query)))
        runner.start()
        time.sleep(0.2)
        begun = time.monotonic()
        con.interrupt()
        runner.join()
        assert "INTERRUPT" in failed[0]
        assert time.monotonic() - begun < 5
        assert lender.transactions() == 0
        assert con.execute(f"SELECT count(*) FROM '{pool}/t'").fetchall() == [(100_000,)]
        lender.take_back()


def test_connections_query_a_pool_at_the_same_time(lender, pool):
    with connect() as con:
        lender.insert(0, 20_000)
        wrong = []

        def query(number):
            with con.cursor() as own:
                for _ in range(15):
                    found = own.execute(f"SELECT count(*), sum(id) FROM '{pool}/t' WHERE g = "
                                        f"{number}").fetchall()
                    if found != [(2000, sum(range(number, 20_000, 10)))]:
                        wrong.append(found)

        threads = [threading.Thread(target=query, args=[number]) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert lender.transactions() == 0
        lender.take_back()


def test_progress_is_told_while_a_scan_runs(lender, pool):
    with connect() as con:
        lender.insert(0, 300_000)
        con.execute("SET threads = 1")
        con.execute("SET enable_progress_bar = true")
        con.execute("SET enable_progress_bar_print = false")
        con.execute("SET progress_bar_time = 1")
        query = f"SELECT max(md5(repeat(id::VARCHAR, 100))) FROM '{pool}/t'"
        runner = threading.Thread(target=lambda: con.execute(query).fetchall())
        runner.start()
        told = set()
        while runner.is_alive():
            told.add(con.query_progress())
            time.sleep(0.002)
        runner.join()
        assert any(0 < percentage < 100 for percentage in told)
        lender.take_back()


def test_each_statement_of_a_transaction_sees_a_later_moment(con, pool):
    add = f"COPY (SELECT 1 AS id) TO '{pool}/t' (FORMAT flugs)"
    con.execute(add)
    ask = f"SELECT count(*) FROM '{pool}/t'"
    con.execute("BEGIN")
    for name in ("first", "second"):
        con.execute(f"PREPARE {name} AS {ask}")
    asked = ["EXECUTE first", "EXECUTE second", "EXECUTE first", ask]
    for rows, query in enumerate(asked, 1):
        assert con.execute(query).fetchall() == [(rows,)]
        with con.cursor() as other:
            other.execute(add)
    con.execute("COMMIT")
