"""DuckDB over databases that Python has open."""

import contextlib
import datetime
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from decimal import Decimal

import flugs
import pytest
from conftest import ALL_TYPES
from test_threads import in_threads

duckdb = pytest.importorskip("duckdb")
pytestmark = pytest.mark.skipif(not hasattr(flugs._flugs, "_serve_duckdb"),
                                reason="built without the headers of DuckDB")

MANY = 300_000


@pytest.fixture(name="con")
def connection():
    with duckdb.connect(config={"allow_unsigned_extensions": "true"}) as con:
        yield con


@pytest.fixture(name="many")
def table_of_many_rows(db):
    table = db.create_table("many", {"id": flugs.int64, "s": flugs.string, "n": flugs.int32},
                            primary_key="id")
    table.insert_rows((k, f"text {k % 100}", k % 1000) for k in range(MANY))
    return table


def test_a_query_sees_what_is_committed(db, sales, con):
    assert db.to_duckdb(con) is con
    assert con.execute("from sales").fetchall() == []
    sales.insert({"item": "pen", "price": Decimal("1.20")})
    asked = "select item, price, count from sales where price > 1 order by id"
    assert con.execute(asked).fetchall() == [("pen", Decimal("1.20"), 1)]
    with db.begin() as t:
        t.insert("sales", {"item": "book", "price": Decimal(18)})
        assert len(con.execute(asked).fetchall()) == 1
    db.merge("sales")
    sales.update(1, {"count": 5})
    assert con.execute(asked).fetchall() == [("pen", Decimal("1.20"), 5), ("book", Decimal(18), 1)]
    assert con.sql("select sum(price) from sales").fetchall() == [(Decimal("19.20"),)]


def test_all_types_arrive(db, everything, con):
    rows = [(k, k % 2 == 0, k - 50, k * 10**12, k / 8, Decimal(k) / 8,
             datetime.date(2000, 1, 1) + datetime.timedelta(days=k),
             datetime.datetime(2024, 1, 1) + datetime.timedelta(microseconds=k * 10**7 + 1),
             f"text {k % 13} ü", bytes([k % 256] * (k % 20)))
            if k % 4 != 3 else (k,) + (None,) * 9 for k in range(1000)]
    everything.insert_rows(rows)
    db.to_duckdb(con)
    assert con.execute("from everything order by k").fetchall() == rows
    kinds = [str(kind) for _, kind, *_ in con.execute("describe everything").fetchall()]
    assert kinds == ["BIGINT", "BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL(18,3)", "DATE",
                     "TIMESTAMP", "VARCHAR", "BLOB"] and len(kinds) == len(ALL_TYPES)


def test_names_and_catalogues(db, con, path):
    db.create_table('odd "name', {"a": flugs.int64}).insert((1,))
    db.create_table("t", {'it\'s "x"': flugs.int64}).insert((2,))
    assert db.to_duckdb(con, name='a "shop') is con
    assert con.execute('from "a ""shop"."odd ""name"').fetchall() == [(1,)]
    assert con.execute('select "it\'s ""x""" from "a ""shop".t').fetchall() == [(2,)]
    with pytest.raises(duckdb.CatalogException):
        con.execute("from t")
    with flugs.open(":memory:") as other:  # which has no path
        other.create_table("t", {"a": flugs.int64}).insert((3,))
        other.to_duckdb(con)
        joined = 'select x.a, y.* from t x, "a ""shop".t y'
        assert con.execute(joined).fetchall() == [(3, 2)]
    # A pool that is open is found by its path as well.
    assert con.execute(f"from flugs_scan('{path}', 't')").fetchall() == [(2,)]
    made = db.to_duckdb()
    assert made is not con and made.execute("from t").fetchall() == [(2,)]
    made.close()


def test_cursors_have_the_views(db, sales, con, path):
    sales.insert({"item": "a"})
    db.to_duckdb(con)
    with con.cursor() as cursor:
        assert cursor.execute("select item from sales").fetchall() == [("a",)]
    # DuckDB's own file does not keep them.
    options = {"allow_unsigned_extensions": "true"}
    with duckdb.connect(path + ".duckdb", config=options) as filed:
        db.to_duckdb(filed)
        db.to_duckdb(filed, name="shop")
        assert filed.execute("select item from sales").fetchall() == [("a",)]
        with filed.cursor() as cursor:
            assert cursor.execute("select item from shop.sales").fetchall() == [("a",)]
    with duckdb.connect(path + ".duckdb", config=options) as filed:
        assert filed.execute("select view_name from duckdb_views() where not internal"
                             ).fetchall() == []


def test_lending_again_and_again_keeps_no_names(db, sales, con):
    sales.insert({"item": "a"})
    for number in range(300):
        with db.begin(read_only=True) as t:
            t.to_duckdb(con, name="mine")
            if number % 100 == 0:
                assert con.execute("select item from mine.sales").fetchall() == [("a",)]
    del t
    with pytest.raises(duckdb.IOException, match="the program has closed it"):
        con.execute("from mine.sales").fetchall()
    with pytest.raises(duckdb.IOException, match="the program has closed it"):
        con.execute("from flugs_scan('flugs:1000000', 't')")


def test_tables_that_change(db, con):
    db.create_table("t", {"a": flugs.int64}).insert((1,))
    db.to_duckdb(con)
    db.add_column("t", "b", flugs.int32.default(7))
    assert con.execute("select a, b from t").fetchall() == [(1, 7)]
    db.drop_table("t")
    with pytest.raises(duckdb.Error, match="t"):
        con.execute("from t")


def test_a_transaction_shows_what_it_sees(db, sales, con):
    sales.insert({"item": "pen"})
    t = db.begin()
    t.to_duckdb(con, name="mine")
    db.to_duckdb(con)
    sales.insert({"item": "book"})
    t.insert("sales", {"item": "own"})
    asked = "select list_sort(list(item)) from {}sales"
    for _ in range(2):
        assert con.execute(asked.format("mine.")).fetchone() == (["own", "pen"],)
        assert con.execute(asked.format("")).fetchone() == (["book", "pen"],)
    # Two scans of one transaction at once, and one that is given up.
    assert con.execute("select count(*) from mine.sales a, mine.sales b").fetchone() == (4,)
    assert len(con.execute("from mine.sales limit 1").fetchall()) == 1
    t.commit()
    with pytest.raises(duckdb.Error, match="the transaction has ended"):
        con.execute("from mine.sales").fetchall()
    with pytest.raises(flugs.Error):
        t.to_duckdb(con, name="mine")
    assert con.execute("select count(*) from sales").fetchone() == (3,)


def test_a_transaction_that_is_forgotten_ends(db, sales, con):
    t = db.begin()
    t.to_duckdb(con, name="mine")
    assert con.execute("from mine.sales").fetchall() == []
    del t
    assert db.statistics()["transactions_open"] == 0
    with pytest.raises(duckdb.Error):
        con.execute("from mine.sales")
    sales.insert({"item": "a"})


def test_rows_of_duckdb_go_into_the_transaction_that_it_reads(db, many, con):
    copy = db.create_table("copy", many.schema, primary_key="id")
    db.to_duckdb(con)
    with db.begin() as t:
        assert t.insert_rows("copy", con.sql("from many where id < 100000")) == 100_000
        t.to_duckdb(con, name="mine")
        # Rows that are read in the middle of a call of the same transaction: refused, no hang.
        with pytest.raises(Exception, match="in the middle of another call"):
            t.insert_rows("copy", con.sql("select id + 1000000 as id, s, n from mine.many"
                                         ).to_arrow_reader(1000))
    assert len(copy) in (100_000, 400_000)
    db.check()


def test_closing_ends_queries_and_hinders_no_opening(db, many, con, path):
    db.to_duckdb(con)
    held = db.begin(read_only=True)
    held.to_duckdb(con, name="held")
    asked, ends = set(), []

    def ask(table, cursor):
        try:
            while True:
                cursor.execute(f"select sum(n), min(s) from {table} where n < 990").fetchall()
                asked.add(table)
        except duckdb.Error as error:
            ends.append(str(error))

    # Views of a connection are not those of its cursors.
    threads = [threading.Thread(target=ask, args=("shop.many", con.cursor())),
               threading.Thread(target=ask, args=("held.many", con.cursor()))]
    db.to_duckdb(con, name="shop")
    for thread in threads:
        thread.start()
    while len(asked) < 2:
        time.sleep(0.01)
    begin = time.monotonic()
    db.close()
    assert time.monotonic() - begin < 10
    for thread in threads:
        thread.join(60)
    assert len(ends) == 2 and all("closed" in end or "ended" in end for end in ends), ends
    for table in ("many", "shop.many", "held.many"):
        with pytest.raises(duckdb.IOException, match="closed"):  # no interrupt
            con.execute(f"from {table} limit 1").fetchall()
    assert con.execute("select 1").fetchall() == [(1,)]
    with flugs.open(path) as again:  # DuckDB does not have the pool
        assert len(again["many"]) == MANY
        again.to_duckdb(con)
        assert con.execute("select count(*) from many").fetchone() == (MANY,)


def test_a_query_and_its_transaction_may_end_at_once(db, con):
    """Both end the streams of the query's scans, each of which has rows left."""
    db.create_table("t", {"a": flugs.int64}).insert_rows((k,) for k in range(10))
    con.execute("pragma disable_optimizer")  # planning would take longer than all else
    scans = ", ".join(f"(select a from mine.t limit 1) s{k}" for k in range(60))
    together = threading.Barrier(2)

    def close(cursor):
        together.wait(60)
        cursor.close()

    for number in range(36):
        t = db.begin()
        t.insert("t", (number,))
        cursor = con.cursor()
        t.to_duckdb(cursor, name="mine")
        assert cursor.execute(f"select s0.a from {scans}, range(100000)").fetchone() == (0,)
        closing = threading.Thread(target=close, args=(cursor,))
        closing.start()
        together.wait(60)
        time.sleep(number % 12 * 20e-6)
        if number % 3 == 0:
            t.commit()
        else:
            t.abort()
        closing.join(60)
        assert not closing.is_alive()
    assert db.statistics()["transactions_open"] == 0
    assert len(db["t"]) == 22
    db.check()


def test_a_connection_may_end_first_or_last(db, sales, path):
    sales.insert({"item": "a"})
    first, last = db.to_duckdb(), db.to_duckdb()
    reader = first.execute("from sales")
    first.close()
    del reader
    assert last.execute("select item from sales").fetchall() == [("a",)]
    left = last.cursor()
    db.close()
    last.close()
    with flugs.open(path) as again:
        assert len(again["sales"]) == 1
    left.close()


def test_a_result_that_is_half_read_does_not_keep_the_pool(db, many, con, path):
    db.to_duckdb(con)
    reader = con.sql("from many").to_arrow_reader(1000)
    reader.read_next_batch()
    db.close()
    flugs.open(path).close()
    with contextlib.suppress(OSError):  # unless DuckDB has them all
        assert reader.read_all().num_rows <= MANY - 1000


def test_transactions_go_on_meanwhile(db, con):
    """Two tables whose sums are equal in each committed state."""
    for name in ("a", "b"):
        db.create_table(name, {"id": flugs.int64, "n": flugs.int64}, primary_key="id").insert_rows(
            (k, 0) for k in range(2000))
    db.to_duckdb(con, name="shop")
    ended = threading.Event()

    def write(number):
        k = number
        while not ended.is_set():
            k = (k * 31 + 7) % 2000
            with db.begin() as t:
                t.add("a", k, "n", 1)
                t.add("b", 1999 - k, "n", 1)
                t.insert("a", (10**9 * number + written[number], 0))
            written[number] += 1

    def work(number):
        try:
            while number < 2 and not ended.is_set():
                with contextlib.suppress(flugs.Conflict):
                    write(number)
            if number == 2:
                ask()
        finally:
            ended.set()

    def ask():
        last = -1
        with con.cursor() as cursor:
            for _ in range(40):
                (a, b), = cursor.execute(
                    "select (select sum(n) from shop.a), (select sum(n) from shop.b)").fetchall()
                assert a == b and a >= last
                last = a
        assert last > 0

    written = [10**4, 10**4]
    assert in_threads(3, work) == []


def test_duckdb_must_be_told_to_take_the_extension(db, sales):
    with duckdb.connect() as con:
        with pytest.raises(duckdb.Error, match="allow_unsigned_extensions"):
            db.to_duckdb(con)
    assert len(sales) == 0


def ask_in_child(db, con, answers):
    failed = 0
    for call in (lambda: db.to_duckdb(), lambda: db.to_duckdb(con)):
        try:
            call()
        except flugs.Closed as error:
            failed += "fork" in str(error)
    answers.put(failed)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_leaves_the_pool_to_the_parent(db, sales, con):
    sales.insert({"item": "a"})
    db.to_duckdb(con)
    t = db.begin()
    t.to_duckdb(con, name="mine")
    assert con.execute("select count(*) from mine.sales").fetchone() == (1,)
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=ask_in_child, args=(db, con, answers))
    child.start()
    assert answers.get(timeout=30) == 2
    child.join(30)
    assert child.exitcode == 0
    t.abort()
    sales.insert({"item": "b"})
    assert con.execute("select count(*) from sales").fetchall() == [(2,)]
    db.check()


def run(code, *arguments, **options):
    return subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code,
                           *arguments], capture_output=True, text=True, timeout=60, check=False,
                          **options)


BEGIN = """
import flugs, os, sys
db = flugs.open(sys.argv[1], max_bytes=1 << 28)
table = db.create_table("t", {"a": flugs.int64}, if_not_exists=True)
table.insert_rows((k,) for k in range(100000))
con = db.to_duckdb()
t = db.begin()
t.to_duckdb(con, name="mine")
"""


@pytest.mark.parametrize("end", [
    "reader = con.sql('from t').to_arrow_reader(1000); reader.read_next_batch()",
    "con.execute('from mine.t limit 1').fetchall(); del db, t, table",
    "db.close()", "con.close()", "t.abort(); del con, db",
    "child = os.fork()\nif child == 0: del con, t, db, table; sys.exit(0)\nos.wait()",
])
def test_a_process_may_end_with_everything_open(path, end):
    ended = run(BEGIN + end + "\nprint('end')", path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "end\n", "")
    with flugs.open(path) as db:
        assert len(db["t"]) == 100_000


def test_a_signal_ends_a_query(path):
    with subprocess.Popen([sys.executable, "-c", BEGIN + """
print("begun", flush=True)
try:
    while True:
        con.execute("select sum(a) from t").fetchall()
except (KeyboardInterrupt, RuntimeError):
    print("interrupted", con.execute("select count(*) from t").fetchone(), flush=True)
""", path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "begun\n"
        time.sleep(0.3)
        os.kill(child.pid, signal.SIGINT)
        assert child.communicate(timeout=30)[0] == "interrupted (100000,)\n"
        assert child.returncode == 0
