"""Objects that threads share. With the GIL their calls take turns; without it they meet."""

import threading

import flugs
import pytest
from test_threads import in_threads

THREADS = 4


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
