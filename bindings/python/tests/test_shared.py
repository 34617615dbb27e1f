"""Objects that threads share. With the GIL their calls take turns; without it they meet."""

import contextlib
import random
import sys
import sysconfig
import threading
import time

import flugs
import pytest
from flugs import col
from test_threads import in_threads

THREADS = 4


def at_once(work):
    """What `work` returns, or the class of what it raises, in threads that begin together."""
    begun = threading.Barrier(THREADS)
    ends = []

    def one(number):
        begun.wait(30)
        try:
            ends.append(work(number))
        except (flugs.Error, ValueError) as error:
            ends.append(type(error))  # its traceback would keep all that the test has

    assert in_threads(THREADS, one) == []
    assert len(ends) == THREADS
    return ends


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="it has a GIL")
def test_the_module_leaves_the_gil_off():
    assert sys._is_gil_enabled() is False  # pylint: disable=protected-access,no-member


def test_look_ups_see_each_change_of_a_schema(db):
    table = db.create_table("t", {"a": flugs.int64}, primary_key="a")
    table.insert((1,))
    added, done = 0, threading.Event()

    def look(_):
        while not done.is_set():
            known = added
            with db.begin(read_only=True) as t:
                row = t.get("t", 1)
            assert row.pop("a") == 1 and len(row) >= known
            assert list(row) == [f"c{k}" for k in range(len(row))]
            assert set(row.values()) <= {None}

    def change():
        nonlocal added
        try:
            for k in range(40):
                db.add_column("t", f"c{k}", flugs.int32)
                added = k + 1
                assert list(table.get(1)) == ["a"] + [f"c{i}" for i in range(k + 1)]
        finally:
            done.set()

    assert in_threads(3, lambda number: change() if number == 0 else look(number)) == []
    assert added == 40


def test_many_tables_are_known_at_once(db):
    names = [f"t{k}" for k in range(200)]  # more than there are buckets
    for k, name in enumerate(names):
        db.create_table(name, {"a": flugs.int64}, primary_key="a").insert((k,))

    def look(number):
        with db.begin() as t:
            for k, name in enumerate(names[number:] + names[:number], number):
                assert t.get(name, k % len(names)) == {"a": k % len(names)}

    assert in_threads(THREADS, look) == []
    db.rename_table("t7", "u")
    with pytest.raises(flugs.NotFound):
        db["u"].get(7, key="t7")
    with db.begin() as t, pytest.raises(flugs.NotFound):
        t.get("t7", 7)
    assert db["u"].get(7) == {"a": 7}


def test_the_name_of_a_table_may_run_code_that_uses_the_database(db, monkeypatch):
    table = db.create_table("t", {"a": flugs.int64}, primary_key="a")
    table.insert((1,))

    class Name(str):
        def __hash__(self):
            return hash((db["t"].name, len(table)))

    # A fresh look-up and one of a table that is not there, whose exception looks one up itself.
    seen = []
    made = flugs.NotFound.__init__

    def init(self, *arguments):
        seen.append(table.get(1))
        made(self, *arguments)

    monkeypatch.setattr(flugs.NotFound, "__init__", init)

    def work(_):
        with db.begin() as t:
            assert t.get(Name("t"), 1) == {"a": 1}
            with pytest.raises(flugs.NotFound):
                t.get("none", 1)

    assert in_threads(1, work) == []
    assert seen == [{"a": 1}]


def test_a_result_goes_to_arrow_once(db):
    table = db.create_table("t", {"a": flugs.int64})
    table.insert_rows((k,) for k in range(100))
    for _ in range(300):
        result = table.query().run()
        ends = at_once(lambda _, result=result: result.__arrow_c_stream__())
        assert ends.count(ValueError) == THREADS - 1, ends


def test_a_batch_goes_to_arrow_once(db):
    table = db.create_table("t", {"a": flugs.int64})
    table.insert_rows((k,) for k in range(100))
    for _ in range(300):
        batch = next(table.query().run().batches())
        ends = at_once(lambda _, batch=batch: batch.__arrow_c_array__())
        assert ends.count(ValueError) == THREADS - 1, ends


def test_any_thread_may_abort(db, sales):
    for _ in range(300):
        t = db.begin()
        t.insert("sales", {"item": "a"})
        assert at_once(lambda _, t=t: t.abort()) == [None] * THREADS
        assert t.state == "aborted"
    assert len(sales) == 0


def test_a_row_may_change_while_it_is_written(db):
    columns = {f"c{k}": flugs.string for k in range(8)}
    table = db.create_table("t", {"a": flugs.int64.auto_increment(), **columns}, primary_key="a")
    row, left = {}, [400, 400]

    def change():
        k = 0
        while any(left):
            k += 1
            row[f"c{k % 8}"] = f"a text that is not short, of turn {k}"
            if k % 50 == 0:
                row.clear()

    def write(number):
        try:
            with db.begin() as t:
                own = t.insert("t", {})
                while left[number]:
                    left[number] -= 1
                    t.insert("t", row)
                    t.update("t", own, row)
                    t.insert_rows("t", [row] * 3)
        finally:
            left[number] = 0

    assert in_threads(3, lambda number: change() if number == 2 else write(number)) == []
    assert len(table) == 2 * (1 + 400 * 4)
    texts = [text for got in table.rows() for name, text in got.items() if name != "a"]
    assert all(text is None or text.startswith("a text that is not short, of turn ")
               for text in texts)
    db.check()


def test_calls_of_every_kind_meet(db):
    table = db.create_table(
        "t", {"id": flugs.int64.auto_increment(), "s": flugs.string, "ü": flugs.int64},
        primary_key=flugs.Key("id", ordered=True), keys={"by_s": "s"})
    table.insert_rows((None, f"text {k % 50} ü", k) for k in range(3000))
    keys, row, changes = list(range(1, 1500)), {"s": "é" * 40}, {"ü": 1}
    shared = {"t": db.begin(), "walk": table.rows("primary"), "result": table.query().run()}

    def begin():
        shared["t"] = t = db.begin()
        shared["walk"] = t.rows("t", "primary")
        shared["result"] = t.query("t").run()

    def change_arguments():
        keys[random.randrange(len(keys))] = random.randrange(4000)
        row.clear()
        changes.clear()
        changes["ü"] = random.randrange(10)
        row["s"] = f"text {random.randrange(50)} é"

    def change_schema():
        name = f"c{random.randrange(3)}"
        try:
            db.add_column("t", name, flugs.int32)
        except flugs.AlreadyExists:
            db.drop_column("t", name)

    calls = [
        begin, change_arguments, change_schema,
        lambda: shared["t"].commit(), lambda: shared["t"].abort(),
        lambda: shared["t"].get("t", random.choice(keys)),
        lambda: shared["t"].get_many("t", keys), lambda: table.get_many(keys),
        lambda: shared["t"].insert("t", row), lambda: shared["t"].insert_rows("t", [row] * 3),
        lambda: shared["t"].update("t", random.choice(keys), changes),
        lambda: shared["t"].upsert("t", row, changes),
        lambda: shared["t"].update_where("t", col("id") == random.choice(keys), changes),
        lambda: table.add(random.choice(keys), "ü", 1),
        lambda: [next(shared["walk"]) for _ in range(20)],
        lambda: shared["result"].fetchmany(100), lambda: shared["result"].explain(),
        lambda: shared["result"].close(),
        lambda: [batch.__arrow_c_array__() for batch in table.query().run().batches()],
        lambda: table.query().group_by("s", agg=flugs.count()).fetchall(),
        lambda: db.merge("t"), db.statistics,
    ]
    end, done = time.monotonic() + 3, [0] * THREADS

    def work(number):
        choose = random.Random(number)
        while time.monotonic() < end:
            with contextlib.suppress(flugs.Error, StopIteration):
                choose.choice(calls)()
                done[number] += 1

    assert in_threads(THREADS, work) == []
    assert min(done) > 0
    shared.clear()
    db.check()
