"""Arrow out, validated by every reader there is."""

import datetime
import gc
from decimal import Decimal

import flugs
import pytest
from flugs import col

pyarrow = pytest.importorskip("pyarrow")

ROWS = 3000


def make_row(k):
    if k % 4 == 3:
        return (k,) + (None,) * 9
    return (k, k % 2 == 0, k - 1000, k * 10**12, k / 8, Decimal(k) / 8,
            datetime.date(2000, 1, 1) + datetime.timedelta(days=k),
            datetime.datetime(1969, 12, 31) + datetime.timedelta(microseconds=k * 10**9 + 7),
            f"text {k % 13} ü", bytes([k % 256] * (k % 20)))


@pytest.fixture(name="filled", params=["delta", "main", "both"])
def filled_table(request, db, everything):
    everything.insert_rows(make_row(k) for k in range(ROWS // 2))
    if request.param != "delta":
        db.merge("everything")
    everything.insert_rows(make_row(k) for k in range(ROWS // 2, ROWS))
    if request.param == "main":
        db.merge("everything")
    return everything


EXPECTED = [make_row(k) for k in range(ROWS)]


def test_pyarrow_validates_and_reads_it(filled):
    table = filled.query().order_by("k").to_arrow()
    table.validate(full=True)
    plain = pyarrow.table({
        name: column.cast(column.type.value_type) if pyarrow.types.is_dictionary(column.type)
        else column for name, column in zip(table.column_names, table.columns)})
    assert [tuple(row.values()) for row in plain.to_pylist()] == EXPECTED
    assert [str(kind) for kind in plain.schema.types] == [
        "int64", "bool", "int32", "int64", "double", "decimal128(19, 3)", "date32[day]",
        "timestamp[us]", "string", "binary"]


@pytest.fixture(name="nanoarrow")
def package_nanoarrow():
    return pytest.importorskip("nanoarrow")


def validate(nanoarrow, array):
    """Has nanoarrow look at all buffers of a c_array, and at what is in them; c_array.view() looks
    at their sizes only. Raises if anything is wrong. Returns the number of rows."""
    rows = array.length
    if array.n_children > 0:  # nanoarrow does not take these with their parent
        for child in array.children:
            validate(nanoarrow, child)
            if child.length < array.offset + rows:
                raise ValueError(f"{child.length} rows of a child, {rows} of its parent")
        return rows
    view = array.view()
    schema = array.schema
    if array.dictionary is not None:  # nanoarrow does not take it with the codes
        validate(nanoarrow, array.dictionary)
        schema = getattr(nanoarrow, view.storage_type)()
    buffers = [view.buffer(i) for i in range(view.n_buffers)]
    checked = nanoarrow.c_array_from_buffers(schema, rows, buffers, offset=array.offset,
                                             validation_level="full")
    if array.null_count not in (-1, checked.null_count):
        raise ValueError(f"{array.null_count} NULLs are said, {checked.null_count} are there")
    if array.dictionary is not None:
        codes = [code for code in nanoarrow.Array(checked).to_pylist() if code is not None]
        if codes and not 0 <= min(codes) <= max(codes) < array.dictionary.length:
            raise ValueError(f"codes {min(codes)} to {max(codes)} of a dictionary of "
                             f"{array.dictionary.length} texts")
    return rows


def test_nanoarrow_validates_it(filled, nanoarrow):
    rows, coded = 0, 0
    for query in (filled.query(), filled.query().where(col("k") % 3 != 0)):
        for batch in query.run().batches():
            array = nanoarrow.c_array(batch)
            rows += validate(nanoarrow, array)
            coded += sum(child.dictionary is not None for child in array.children)
    assert rows == ROWS + ROWS * 2 // 3 and coded > 0
    stream = nanoarrow.c_array_stream(filled)
    assert sum(validate(nanoarrow, chunk) for chunk in stream) == ROWS


def damaged_arrays():
    texts = pyarrow.py_buffer(b"abcdef")
    offsets = pyarrow.array([0, 5, 2, 6], pyarrow.int32()).buffers()[1]
    codes = [pyarrow.array(codes, pyarrow.int32()) for codes in ([0, None, 1], [0, 1, -1])]
    falling = pyarrow.StringArray.from_buffers(3, offsets, texts)
    return {
        "falling offsets": falling,
        "code beyond the dictionary": pyarrow.DictionaryArray.from_arrays(
            codes[0], pyarrow.array(["a"]), safe=False),
        "code below 0": pyarrow.DictionaryArray.from_arrays(
            codes[1], pyarrow.array(["a", "b"]), safe=False),
        "falling offsets of a dictionary": pyarrow.DictionaryArray.from_arrays(
            codes[0], falling, safe=False),
        "in a struct": pyarrow.StructArray.from_arrays([falling], names=["s"]),
    }


@pytest.mark.parametrize("damage", damaged_arrays())
def test_nanoarrow_refuses_damaged_arrays(nanoarrow, damage):
    with pytest.raises((ValueError, RuntimeError), match="element size|of a dictionary of"):
        validate(nanoarrow, nanoarrow.c_array(damaged_arrays()[damage]))


def test_polars_reads_it(filled):
    polars = pytest.importorskip("polars")
    frame = filled.to_polars().sort("k")
    coded = [name for name, kind in frame.schema.items() if kind == polars.Categorical]
    frame = frame.with_columns(polars.col(coded).cast(polars.String))
    assert frame.rows() == EXPECTED


def test_duckdb_reads_it(filled):
    duckdb = pytest.importorskip("duckdb")
    stream = filled.query()
    assert duckdb.sql("select * from stream order by k").fetchall() == EXPECTED
    whole = filled
    assert duckdb.sql("select count(*), sum(l) from whole").fetchall() == [
        (ROWS, sum(row[3] for row in EXPECTED if row[3] is not None))]


def test_pandas_reads_it(filled):
    pandas = pytest.importorskip("pandas")
    frame = filled.query().select("k", "s", "f").order_by("k").to_pandas()
    assert list(frame["k"]) == list(range(ROWS))
    assert frame["s"][1] == "text 1 ü" and pandas.isna(frame["s"][3]) and pandas.isna(frame["f"][3])


def test_rows_of_objects_are_the_same(filled):
    assert filled.query().order_by("k").fetchall() == EXPECTED


def test_texts_keep_their_dictionary(filled):
    table = filled.query().select("s").to_arrow()
    assert pyarrow.types.is_dictionary(table.schema.field("s").type)


@pytest.mark.parametrize("reader", ["pyarrow", "polars", "nanoarrow"])
@pytest.mark.parametrize("column", ["b", "i", "l", "f", "m", "d", "t", "s", "y"])
def test_empty_and_null_columns(everything, column, reader):
    library = pytest.importorskip(reader)
    for rows in (0, 1, 9):
        query = everything.query().select(column)
        if reader == "pyarrow":
            table = query.to_arrow()
            table.validate(full=True)
            assert table.to_pydict() == {column: [None] * rows}
        elif reader == "polars":
            assert query.to_polars()[column].to_list() == [None] * rows
        else:
            chunks = library.c_array_stream(query)
            assert sum(validate(library, chunk) for chunk in chunks) == rows
        everything.insert_rows({"k": k + 10 * rows + 1} for k in range(1 if rows == 0 else 8))


def test_capsules_release_what_nobody_takes(db, everything):
    everything.insert({"k": 1})
    for _ in range(10):
        everything.__arrow_c_stream__()
        everything.query().__arrow_c_stream__(None)
        for batch in everything.query().run().batches():
            batch.__arrow_c_array__()
            with pytest.raises(ValueError):
                batch.__arrow_c_array__()
    gc.collect()
    assert db.statistics()["transactions_open"] == 0


def test_a_result_goes_one_way_only(everything):
    everything.insert_rows({"k": k} for k in range(10))
    result = everything.query().run()
    assert pyarrow.table(result).num_rows == 10
    with pytest.raises(ValueError):
        pyarrow.table(result)
    with pytest.raises(ValueError):
        result.fetchone()
    assert ", 10 selected" in result.explain()
    result = everything.query().run()
    result.fetchone()
    with pytest.raises(ValueError):
        pyarrow.table(result)


def test_arrays_outlive_everything(path):
    db = flugs.open(path, max_bytes=1 << 26)
    table = db.create_table("t", {"a": flugs.int64, "s": flugs.string})
    table.insert_rows((k, f"s{k % 3}") for k in range(1000))
    arrow = table.to_arrow()
    db.close()
    del db, table
    gc.collect()
    arrow.validate(full=True)
    assert arrow.num_rows == 1000 and arrow["s"][4].as_py() == "s1"


def test_a_stream_that_is_kept_fails_after_close(path):
    db = flugs.open(path, max_bytes=1 << 28)
    table = db.create_table("t", {"a": flugs.int64})
    table.insert_rows((k,) for k in range(200_000))
    reader = pyarrow.RecordBatchReader.from_stream(table)
    reader.read_next_batch()
    rows = iter(table.query())
    next(rows)
    batches = table.query().run().batches()
    db.close()
    with pytest.raises((OSError, pyarrow.ArrowInvalid), match="the database is closed"):
        while True:
            reader.read_next_batch()
    with pytest.raises(flugs.Closed):
        list(rows)
    with pytest.raises(flugs.Closed):
        next(batches)
    reader.close()


def test_a_stream_fails_when_its_transaction_ends(db, everything):
    everything.insert_rows({"k": k} for k in range(200_000))
    t = db.begin()
    reader = pyarrow.RecordBatchReader.from_stream(t.query("everything").where(col("k") >= 0))
    reader.read_next_batch()
    t.abort()
    with pytest.raises((OSError, pyarrow.ArrowInvalid), match="the transaction has ended"):
        while True:
            reader.read_next_batch()
