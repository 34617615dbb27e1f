"""Ends: close, exceptions that keep objects, forks, exits of the process."""

import gc
import multiprocessing
import os
import subprocess
import sys

import flugs
import pytest


def uses(db, table, transaction, rows, result, point):
    """Each as a call that must fail once the database is closed."""
    return [
        lambda: db.begin(), lambda: db.table("t"), lambda: db["t"], lambda: "t" in db, db.tables,
        lambda: db.query("t"), db.statistics, lambda: db.merge("t"), db.check,
        lambda: db.create_table("u", {"a": flugs.int64}), lambda: db.drop_table("t"),
        lambda: db.path, lambda: db.run(lambda t: 1),
        lambda: table.get(1), lambda: table.insert((9,)), lambda: table.insert_rows([(9,)]),
        lambda: table.update(1, {}), lambda: table.delete(1), lambda: table.upsert((1,)),
        lambda: table.rows(), lambda: table.query(), lambda: table.schema, lambda: len(table),
        lambda: transaction.get("t", 1), lambda: transaction.insert("t", (9,)),
        lambda: transaction.rows("t"), lambda: transaction.query("t"), transaction.savepoint,
        transaction.commit, lambda: transaction.snapshot, point.rollback,
        lambda: next(rows), lambda: next(result), lambda: result.fetchall(),
    ]


def open_all(path):
    db = flugs.open(path, max_bytes=1 << 26)
    table = db.create_table("t", {"a": flugs.int64}, primary_key=flugs.Key("a", ordered=True),
                            if_not_exists=True)
    table.insert_rows((k,) for k in range(1, 9))
    transaction = db.begin()
    rows = transaction.rows("t", "primary")
    next(rows)
    point = transaction.savepoint()
    result = table.query().run()
    next(result)
    return uses(db, table, transaction, rows, result, point), db, transaction


def test_close_ends_everything(path):
    calls, db, transaction = open_all(path)
    transaction.insert("t", (100,))
    db.close()
    db.close()
    assert not db.is_open and transaction.state == "closed"
    for call in calls:
        with pytest.raises(flugs.Closed, match="the database is closed") as caught:
            call()
        assert isinstance(caught.value, RuntimeError) and caught.value.code == "invalid argument"
    transaction.abort()
    with flugs.open(path) as again:
        assert len(again["t"]) == 8


def test_a_traceback_keeps_no_pool(path):
    kept = None
    try:
        with flugs.open(path, max_bytes=1 << 26) as db:
            db.create_table("t", {"a": flugs.int64})
            t = db.begin()
            t.insert("t", (1,))
            raise ZeroDivisionError
    except ZeroDivisionError as error:
        kept = error
    assert kept.__traceback__ is not None
    with flugs.open(path) as again:
        assert len(again["t"]) == 0


def test_a_pool_is_open_once(path):
    with flugs.open(path, max_bytes=1 << 26):
        with pytest.raises(flugs.Busy):
            flugs.open(path)
    with pytest.raises(flugs.AlreadyExists):
        flugs.open(path, exclusive=True)
    with flugs.open(path, read_only=True) as reader:
        with pytest.raises(flugs.ReadOnly):
            reader.create_table("t", {"a": flugs.int64})
    with pytest.raises(flugs.NotFound):
        flugs.open(path + "2", create=False)


def test_a_path_need_not_be_utf_8(path):
    odd = os.fsencode(path) + b"\xff"
    with pytest.raises(flugs.NotFound):
        flugs.open(odd, create=False)
    with flugs.open(odd, max_bytes=1 << 26) as db:
        assert db.path == os.fsdecode(odd)


def test_objects_that_nobody_keeps_close_the_database(path):
    calls, db, transaction = open_all(path)
    del calls, db, transaction
    gc.collect()
    flugs.open(path).close()


def test_a_database_in_memory():
    with flugs.open(":memory:") as db:
        db.create_table("t", {"a": flugs.int64}).insert((1,))
        statistics = db.statistics()
        assert statistics["medium"] == "memory" and statistics["clock"] in ("counter", "processors")
        assert isinstance(statistics["merge_seconds"], float)
        assert statistics["pool_free_bytes"] + statistics["pool_used_bytes"] + \
            statistics["pool_overhead_bytes"] == statistics["pool_allocated_bytes"]
        merged = db.merge("t")
        assert merged["rows"] == 1 and merged["chunks_merged"] == 1 and merged["chunks_left"] == 0


def test_close_within_a_call_is_refused(db, sales):
    class Closer:
        def __index__(self):
            db.close()
            return 1

    with pytest.raises(flugs.Busy):
        sales.insert((Closer(), "a", None, 1))
    assert db.is_open and len(sales) == 0


def in_child(calls, path, answers):
    failed = 0
    for call in calls:
        try:
            call()
        except flugs.Closed as error:
            failed += "fork" in str(error)
    try:
        flugs.open(path)
        busy = False
    except flugs.Busy:
        busy = True
    answers.put((failed, busy))


def test_a_fork_makes_handles_dead(path):
    calls, db, transaction = open_all(path)
    transaction.insert("t", (50,))
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=in_child, args=(calls, path, answers))
    child.start()
    assert answers.get(timeout=30) == (len(calls), True)
    child.join(30)
    assert child.exitcode == 0
    # The child's end has left the parent's pool alone.
    transaction.commit()
    assert db["t"].get(50) == {"a": 50}
    del calls, child
    gc.collect()
    assert db.statistics()["transactions_open"] == 0
    db.check()
    db.close()


def test_a_forked_child_may_exit_in_every_way(path):
    with flugs.open(path, max_bytes=1 << 26) as db:
        db.create_table("t", {"a": flugs.int64})
        transaction = db.begin()
        transaction.insert("t", (1,))
        reader = db.query("t").run()
        child = os.fork()
        if child == 0:
            del reader, transaction
            gc.collect()
            db.close()
            os._exit(7)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        transaction.commit()
        assert len(db["t"]) == 1


def test_a_forked_child_frees_the_database_and_runs_to_its_end(path):
    ended = run("""
import flugs, os, sys
db = flugs.open(sys.argv[1], max_bytes=1 << 26)
table = db.create_table("t", {"a": flugs.int64})
result = db.query("t").run()
child = os.fork()
if child == 0:
    result.close()
    try:
        result.explain()
    except flugs.Closed:
        del db, table, result
        for _ in range(8):
            flugs.open(":memory:", max_bytes=1 << 26).close()
        sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), result.fetchall())
""", path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "7 []\n", "")


def run(code, *arguments):
    # Newer versions of Python warn of every fork with threads.
    return subprocess.run([sys.executable, "-W", "ignore::DeprecationWarning", "-c", code,
                           *arguments], capture_output=True, text=True, timeout=60, check=False)


def test_a_process_may_end_with_everything_open(path):
    ended = run("""
import flugs, os, sys
db = flugs.open(sys.argv[1], max_bytes=1 << 26)
table = db.create_table("t", {"a": flugs.int64})
table.insert_rows((k,) for k in range(100))
transaction = db.begin()
transaction.insert("t", (1,))
result = table.query().run()
next(result)
if os.fork() == 0:
    sys.exit(0)
os.wait()
""", path)
    assert (ended.returncode, ended.stderr) == (0, "")
    with flugs.open(path) as db:
        assert len(db["t"]) == 100
