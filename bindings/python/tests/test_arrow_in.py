"""Rows from Arrow, column by column."""

import datetime
import threading
from decimal import Decimal

import flugs
import pytest

pyarrow = pytest.importorskip("pyarrow")

ROWS = [
    {"k": k, "b": k % 2 == 0, "i": k - 50, "l": k * 10**12, "f": k / 8, "m": Decimal(k) / 8,
     "d": datetime.date(2000, 1, 1) + datetime.timedelta(days=k),
     "t": datetime.datetime(2024, 1, 1) + datetime.timedelta(microseconds=k * 10**7 + 1),
     "s": f"text {k % 13} ü", "y": bytes([k % 256] * (k % 20))}
    if k % 4 != 3 else {"k": k} | dict.fromkeys("bilfmdtsy") for k in range(1000)]
TYPES = pyarrow.schema({
    "k": pyarrow.int64(), "b": pyarrow.bool_(), "i": pyarrow.int32(), "l": pyarrow.int64(),
    "f": pyarrow.float64(), "m": pyarrow.decimal128(18, 3), "d": pyarrow.date32(),
    "t": pyarrow.timestamp("us"), "s": pyarrow.string(), "y": pyarrow.binary()})
TABLE = pyarrow.Table.from_pylist(ROWS, schema=TYPES)


def sources():
    # Each makes its object in the test: DuckDB's are of the thread.
    return {
        "pyarrow table": lambda: TABLE,
        "pyarrow batch": lambda: TABLE.to_batches()[0],
        "pyarrow reader": lambda: pyarrow.RecordBatchReader.from_batches(
            TYPES, (batch for batch in TABLE.to_batches(max_chunksize=99))),
        "polars": lambda: pytest.importorskip("polars").from_arrow(TABLE),
        "nanoarrow": lambda: pytest.importorskip("nanoarrow").ArrayStream(TABLE),
        "duckdb": lambda: pytest.importorskip("duckdb").from_arrow(TABLE),
    }


@pytest.mark.parametrize("source", sources())
def test_rows_of_every_library_come_in(everything, source):
    assert everything.insert_rows(sources()[source]()) == 1000
    assert list(everything.query().order_by("k").dicts()) == ROWS


def test_a_table_becomes_another_one(db, everything):
    everything.insert_rows(ROWS)
    columns = everything.schema
    copy = db.create_table("copy", columns, primary_key="k")
    assert copy.insert_rows(everything) == 1000
    with db.begin() as t:
        assert t.insert_rows("everything", [{"k": 5000}]) == 1
        assert t.insert_rows("copy", db.query("copy").where(flugs.col("k") < 0)) == 0
        with pytest.raises(flugs.Error):
            t.insert_rows("copy", t.query("everything"))  # the same transaction, in a call
    assert copy.query().order_by("k").fetchall() == everything.query().where(
        flugs.col("k") < 5000).order_by("k").fetchall()


def test_missing_columns_have_their_defaults(sales):
    sales.insert_rows(pyarrow.table({"item": ["a", "b"]}))
    assert [tuple(row.values()) for row in sales.rows("primary")] == [
        (1, "a", None, 1), (2, "b", None, 1)]


@pytest.mark.parametrize("columns, error", [
    ({"item": ["a"], "nothing": [1]}, flugs.InvalidArgument),
    ({"item": ["a", None]}, flugs.ConstraintViolated),
    ({"item": ["a"], "count": ["b"]}, flugs.ConstraintViolated),
    ({"id": [1, 2, 1], "item": ["a", "b", "c"]}, flugs.AlreadyExists),
])
def test_all_rows_come_in_or_none(db, sales, columns, error):
    with db.begin() as t:
        with pytest.raises((error, flugs.InvalidArgument)) as caught:
            t.insert_rows("sales", pyarrow.table(columns))
        assert caught.value.table == "sales"
        assert (caught.value.key == "primary") == (error is flugs.AlreadyExists)
        t.insert("sales", {"item": "after"})
    assert [row["item"] for row in sales.rows()] == ["after"]


def test_a_source_that_fails_or_uses_the_transaction_is_refused(db, sales):
    kind = pyarrow.schema({"item": pyarrow.string()})

    def batches(what):
        yield pyarrow.record_batch({"item": ["a"]}, schema=kind)
        what()

    def reader(what):
        return pyarrow.RecordBatchReader.from_batches(kind, batches(what))

    seen = []
    with db.begin() as t:
        def use():
            try:
                t.insert("sales", {"item": "within"})
            except flugs.Busy as error:
                seen.append(error)

        with pytest.raises(flugs.Error, match="division"):
            t.insert_rows("sales", reader(lambda: 1 // 0))
        assert t.insert_rows("sales", reader(use)) == 1
    assert len(seen) == 1 and len(sales) == 1
    with pytest.raises(TypeError):
        sales.insert_rows(7)


def test_threads_insert_arrow_at_the_same_time(db):
    table = db.create_table("t", {"k": flugs.int64, "s": flugs.string}, primary_key="k")
    arrows = [pyarrow.table({"k": range(n * 10_000, (n + 1) * 10_000), "s": ["x"] * 10_000})
              for n in range(4)]
    threads = [threading.Thread(target=table.insert_rows, args=(arrow,)) for arrow in arrows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(table) == 40_000
