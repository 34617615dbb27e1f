"""What transactions promise, and what exceptions carry."""

import pickle
import threading

import flugs
import pytest


def test_a_block_commits_at_its_end(db, sales):
    with db.begin() as t:
        t.insert("sales", {"item": "a"})
        assert t.state == "open" and sales.get(1) is None
    assert t.state == "committed" and sales.get(1)["item"] == "a"
    with pytest.raises(flugs.InvalidArgument, match="the transaction is committed"):
        t.get("sales", 1)


def test_an_exception_aborts(db, sales):
    with pytest.raises(ZeroDivisionError):
        with db.begin() as t:
            t.insert("sales", {"item": "a"})
            raise ZeroDivisionError
    assert t.state == "aborted" and len(sales) == 0


def test_a_transaction_may_end_within_its_block(db, sales):
    with db.begin() as t:
        t.insert("sales", {"item": "a"})
        t.commit()
    with db.begin() as t:
        t.insert("sales", {"item": "b"})
        t.abort()
        t.abort()
    assert [row["item"] for row in sales.rows()] == ["a"]


def test_a_transaction_that_nobody_keeps_is_aborted(db, sales):
    db.begin().insert("sales", {"item": "a"})
    assert len(sales) == 0 and db.statistics()["transactions_open"] == 0


def test_readers_see_their_snapshot(db, sales):
    reader = db.begin(read_only=True)
    sales.insert({"item": "a"})
    assert reader.get("sales", 1) is None
    with pytest.raises(flugs.ReadOnly):
        reader.insert("sales", {"item": "b"})


def test_conflicts_carry_table_and_key(db, sales):
    sales.insert({"id": 1, "item": "a"})
    first, second = db.begin(), db.begin()
    first.update("sales", 1, {"item": "b"})
    with pytest.raises(flugs.Conflict) as caught:
        second.update("sales", 1, {"item": "c"})
    error = caught.value
    assert (error.code, error.table, error.key, error.values) == ("conflict", "sales", "primary", 1)
    assert str(error).startswith("conflict")
    third, fourth = db.begin(), db.begin()
    third.insert("sales", {"id": 7, "item": "x"})
    with pytest.raises(flugs.Conflict) as caught:
        fourth.insert("sales", {"id": 7, "item": "x"})
    assert (caught.value.table, caught.value.key) == ("sales", "primary")


def test_errors_name_the_part_of_the_table_that_refused(db):
    db.create_table("shop", {"id": flugs.int64, "city": flugs.string.not_null()},
                    primary_key="id").insert({"id": 1, "city": "Bonn"})
    sale = db.create_table(
        "sale", {"id": flugs.int64, "shop": flugs.int64, "bill": flugs.string,
                 "pieces": flugs.int32},
        primary_key="id", unique={"by_bill": "bill"}, checks={"sold": flugs.col("pieces") > 0},
        foreign_keys={"of_shop": flugs.ForeignKey("shop", "shop")})
    sale.insert({"id": 1, "shop": 1, "bill": "a", "pieces": 1})

    def refused(row, **parts):
        expected = {"key": None, "foreign_key": None, "check": None, "column": None, **parts}
        calls = [sale.insert, lambda one: sale.insert_rows([one])]
        if parts.get("key") != "primary":
            calls.append(sale.upsert)
        for call in calls:
            with pytest.raises(flugs.Error) as caught:
                call(row)
            error = caught.value
            assert error.table == "sale"
            assert {name: getattr(error, name) for name in expected} == expected, str(error)

    refused({"id": 1, "shop": 1, "bill": "b", "pieces": 1}, key="primary")
    refused({"id": 2, "shop": 1, "bill": "a", "pieces": 1}, key="by_bill")
    refused({"id": 2, "shop": 1, "bill": "b", "pieces": 0}, check="sold")
    refused({"id": 2, "shop": 9, "bill": "b", "pieces": 1}, foreign_key="of_shop")
    with pytest.raises(flugs.ConstraintViolated) as caught:
        db["shop"].insert({"id": 2, "city": None})
    assert (caught.value.table, caught.value.column) == ("shop", "city")
    with pytest.raises(flugs.ConstraintViolated) as caught:
        db["shop"].delete(1)
    assert (caught.value.table, caught.value.foreign_key) == ("sale", "of_shop")
    with pytest.raises(flugs.InvalidArgument) as caught:
        db.create_table("wrong", {"id": flugs.int64}, primary_key="it")
    assert (caught.value.table, caught.value.key) == ("wrong", "primary")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.table, copy.key, copy.column) == ("wrong", "primary", None)


def test_errors_are_what_the_engine_says(db, sales):
    sales.insert({"id": 1, "item": "a"})
    with pytest.raises(flugs.AlreadyExists) as caught:
        sales.insert({"id": 1, "item": "b"})
    assert str(caught.value) == "already exists: table sales, key primary: id = 1 exists"
    assert (caught.value.table, caught.value.key) == ("sales", "primary")
    with pytest.raises(flugs.NotFound) as caught:
        sales.find(99)
    error = caught.value
    assert (error.table, error.key, error.values) == ("sales", "primary", 99)
    assert isinstance(error, LookupError) and isinstance(error, flugs.Error)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and copy.values == 99
    with pytest.raises(flugs.NotFound):
        db.table("none")
    with pytest.raises(flugs.ConstraintViolated):
        sales.insert({"id": 2, "item": None})


def test_every_code_has_a_class():
    kinds = [kind for kind in vars(flugs).values()
             if isinstance(kind, type) and issubclass(kind, flugs.Error)]
    assert len({kind.code for kind in kinds}) == 16


def test_run_tries_again_after_a_conflict(db, sales):
    sales.insert({"id": 1, "item": "a", "count": 0})
    calls = []

    def work(t):
        calls.append(t)
        count = t.get("sales", 1)["count"]
        if len(calls) == 1:
            sales.update(1, {"count": 10})
        t.update("sales", 1, {"count": count + 1})
        return count

    assert db.run(work) == 10 and len(calls) == 2
    assert sales.get(1)["count"] == 11
    with pytest.raises(KeyError):
        db.run(lambda t: {}["nothing"])
    assert db.run(lambda t: t.abort()) is None
    assert db.statistics()["transactions_open"] == 0


def test_run_gives_up_in_time(db, sales):
    sales.insert({"id": 1, "item": "a"})
    holder = db.begin()
    holder.update("sales", 1, {"count": 2})
    with pytest.raises(flugs.Conflict):
        db.run(lambda t: t.update("sales", 1, {"count": 3}), time_limit=0.05)


def test_savepoints_undo_parts(db, sales):
    with db.begin() as t:
        t.insert("sales", {"item": "a"})
        with pytest.raises(ZeroDivisionError):
            with t.savepoint():
                t.insert("sales", {"item": "b"})
                raise ZeroDivisionError
        with t.savepoint():
            t.insert("sales", {"item": "c"})
        point = t.savepoint()
        t.insert("sales", {"item": "d"})
        point.rollback()
        t.insert("sales", {"item": "e"})
        point.release()
        with pytest.raises(flugs.InvalidArgument):
            point.rollback()
    assert {row["item"] for row in sales.rows()} == {"a", "c", "e"}


def test_rows_are_locked_and_added_to(db, sales):
    sales.insert({"id": 1, "item": "a", "count": 5})
    with db.begin(isolation="read_committed") as t:
        assert t.lock("sales", 1)["count"] == 5
        with pytest.raises(flugs.Conflict):
            sales.update(1, {"count": 6})
        with pytest.raises(flugs.Busy):
            db.begin().lock("sales", 1, wait=0.01)
        assert t.add("sales", 1, "count", 3) == 8
    assert sales.get(1)["count"] == 8
    with pytest.raises(flugs.Overflow):
        with db.begin() as t:
            t.add("sales", 1, "count", 2**31 - 1)
    with pytest.raises(ValueError):
        db.begin(isolation="none")


def test_the_wait_for_a_lock_is_the_callers(db, sales):
    sales.insert({"id": 1, "item": "a", "count": 5})
    holder, waiter = db.begin(), db.begin()
    with pytest.raises(flugs.InvalidArgument, match="-1000 ms"):
        holder.lock("sales", 1, wait=-1)
    holder.lock("sales", 1)
    conflicts = db.statistics()["conflicts"]
    with pytest.raises(flugs.InvalidArgument, match="-1000 ms"):
        waiter.lock("sales", 1, wait=-1)
    with pytest.raises(flugs.Busy, match="the wait of 0 ms"):
        waiter.lock("sales", 1, wait=0)
    with pytest.raises(flugs.Busy, match="the wait of 20 ms"):
        waiter.lock("sales", 1, wait=0.02)
    threading.Timer(0.1, holder.commit).start()
    assert waiter.lock("sales", 1, wait=60)["count"] == 5
    assert db.statistics()["conflicts"] == conflicts
    waiter.update("sales", 1, {"count": 6})
    waiter.commit()
    assert sales.get(1)["count"] == 6


def test_writes_by_condition(db, sales):
    sales.insert_rows((k, f"i{k % 3}", k, k) for k in range(1, 100))
    with db.begin() as t:
        count = flugs.col("count")
        changed = t.update_where("sales", count < 10, {"count": count * 2})
        assert changed == 9
        assert t.delete_where("sales", flugs.col("item") == "i0") == 33
    assert len(sales) == 66 and sales.get(4)["count"] == 8


def test_calls_of_a_table_commit_or_change_nothing(db, sales):
    count = flugs.col("count")
    sales.insert_rows((k, f"i{k % 3}", k, k) for k in range(1, 100))
    assert sales.update_where(count < 10, {"count": count * 2}) == 9
    assert sales.delete_where(flugs.col("item") == "i0") == 33
    assert sales.add(4, "count", 3) == 11
    assert len(sales) == 66 and sales.get(4)["count"] == 11
    before = sales.query().order_by("id").fetchall()
    with pytest.raises(flugs.Overflow):
        sales.add(4, "count", 2**31 - 1)
    with pytest.raises(flugs.NotFound):
        sales.add(3, "count", 1)
    with pytest.raises(flugs.ConstraintViolated):  # of the last rows
        sales.update_where(count > 0, {"count": count * 2**25})
    with pytest.raises(flugs.ConstraintViolated):
        sales.update_where(count > 0, {"item": None})
    with db.begin() as t:
        t.update("sales", 98, {"count": 1})
        for call in (lambda: sales.update_where(count > 0, {"price": 1}),
                     lambda: sales.delete_where(count > 0), lambda: sales.add(98, "count", 1)):
            with pytest.raises(flugs.Conflict):
                call()
        t.abort()
    assert sales.query().order_by("id").fetchall() == before
    assert db.statistics()["transactions_open"] == 0
    db.close()
    for call in (lambda: sales.update_where(count > 0, {"count": 1}),
                 lambda: sales.delete_where(count > 0), lambda: sales.add(1, "count", 1)):
        with pytest.raises(flugs.Closed):
            call()


def test_a_table_has_the_calls_of_a_transaction():
    def calls_of(kind):
        return {name for name in dir(kind) if name[0] != "_"}

    only = {"lock", "savepoint", "commit", "abort", "set_time_limit", "state", "snapshot",
            "to_duckdb"}
    assert calls_of(flugs.Transaction) - calls_of(flugs.Table) == only


def test_serializable_transactions_refuse_write_skew(db, sales):
    sales.insert_rows([(1, "a", None, 1), (2, "b", None, 1)])
    one, two = db.begin(isolation="serializable"), db.begin(isolation="serializable")
    for t, mine, other in ((one, 1, 2), (two, 2, 1)):
        t.get("sales", other)
        t.update("sales", mine, {"count": 0})
    one.commit()
    with pytest.raises(flugs.Conflict):
        two.commit()
    assert two.state == "aborted"


def test_time_limits_and_slots(path):
    with flugs.open(path, max_bytes=1 << 26, slots_max=2) as db:
        db.create_table("t", {"a": flugs.int64})
        held = [db.begin(), db.begin()]
        with pytest.raises(flugs.TooManyTransactions):
            db.begin()
        held[0].set_time_limit(0.001)
        while True:
            try:
                held[0].insert("t", (1,))
            except flugs.Cancelled:
                break


def test_a_walk_ends_with_its_transaction(db, sales):
    sales.insert_rows((None, "a", None, 1) for _ in range(10))
    t = db.begin()
    walk, query = t.rows("sales", "primary"), t.rows("sales")
    next(walk)
    next(query)
    t.insert("sales", {"item": "b"})
    next(walk)
    t.commit()
    for rows in (walk, query):
        with pytest.raises(flugs.InvalidArgument):
            list(rows)


@pytest.mark.parametrize("cut", range(4))
def test_an_error_shows_the_whole_characters_of_a_text(db, cut):
    table = db.create_table("t", {"s": flugs.string}, primary_key="s")
    text = "x" * cut + "\N{GRINNING FACE}" * 20
    table.insert((text,))
    with pytest.raises(flugs.AlreadyExists) as caught:
        table.insert((text,))
    shown = "x" * cut + "\N{GRINNING FACE}" * ((40 - cut) // 4)
    assert f"'{shown}'... of {80 + cut} bytes" in str(caught.value)


def test_times_may_be_infinite(db, sales):
    sales.insert({"item": "a"})
    with db.begin() as t:
        assert t.lock("sales", 1, wait=float("inf"))["item"] == "a"
        for call in (lambda: t.lock("sales", 1, wait=float("nan")),
                     lambda: t.set_time_limit(float("nan")),
                     lambda: db.merge("sales", patience=float("nan"))):
            with pytest.raises(ValueError, match="NaN"):
                call()
    assert db.merge("sales", patience=float("inf"))["rows"] == 1
