"""Rows in and out, of every type, by every key."""

import datetime
import fractions
import gc
import sys
from decimal import Decimal

import flugs
import pytest

UTC = datetime.timezone.utc

VALUES = {
    "b": [True, False],
    "i": [0, -2**31, 2**31 - 1],
    "l": [0, -2**63, 2**63 - 1],
    "f": [0.0, -1.5, 1e300, float("inf")],
    "m": [Decimal("0.000"), Decimal("-12.345"), Decimal("9223372036854775.807")],
    "d": [datetime.date(1970, 1, 1), datetime.date(1, 1, 1), datetime.date(9999, 12, 31)],
    "t": [datetime.datetime(1970, 1, 1), datetime.datetime(1, 1, 1, 0, 0, 0, 1),
          datetime.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "s": ["", "a", "Grüße, 世界", "x" * 100_000],
    "y": [b"", b"\x00\xff", bytes(range(256)) * 100],
}


def test_values_of_every_type_come_back(everything):
    key = 0
    for column, values in VALUES.items():
        for value in values + [None]:
            key += 1
            everything.insert({"k": key, column: value})
            row = everything.find(key)
            assert row[column] == value and type(row[column]) is type(value)
            assert all(row[other] is None for other in VALUES if other != column)


def test_values_stand_for_each_other_where_they_are_exact(everything):
    everything.insert({"k": 1, "f": 3, "m": 2, "t": datetime.date(2024, 5, 6), "y": "text",
                       "l": Decimal("7")})
    row = everything.find(1)
    assert (row["f"], row["m"], row["l"]) == (3.0, 2, 7)
    assert row["t"] == datetime.datetime(2024, 5, 6) and row["y"] == b"text"


def test_times_with_a_zone_are_stored_as_utc(everything):
    zone = datetime.timezone(datetime.timedelta(hours=2))
    everything.insert({"k": 1, "t": datetime.datetime(2024, 1, 1, 1, 0, tzinfo=zone)})
    everything.insert({"k": 2, "t": datetime.datetime(2024, 1, 1, 1, 0, tzinfo=UTC)})
    assert everything.find(1)["t"] == datetime.datetime(2023, 12, 31, 23, 0)
    assert everything.find(2)["t"] == datetime.datetime(2024, 1, 1, 1, 0)


def test_decimals_may_have_an_exponent(everything):
    everything.insert({"k": 1, "m": Decimal("1.5E+3")})
    assert everything.find(1)["m"] == 1500


def test_numpy_scalars_are_numbers(everything):
    numpy = pytest.importorskip("numpy")
    everything.insert({"k": numpy.int64(4), "f": numpy.float64(0.5), "i": numpy.int16(-3)})
    assert everything.find(4) | {"k": 4} == everything.find(4)
    assert everything.find(4)["f"] == 0.5 and everything.find(4)["i"] == -3


@pytest.mark.parametrize("row, error", [
    ({"k": 2**63}, OverflowError),
    ({"k": 1, "i": 2**31}, flugs.ConstraintViolated),
    ({"k": 1, "i": 1.5}, flugs.ConstraintViolated),
    ({"k": 1, "s": 7}, flugs.ConstraintViolated),
    ({"k": 1, "s": "\ud800"}, UnicodeEncodeError),
    ({"k": 1, "m": Decimal("NaN")}, ValueError),
    ({"k": 1, "m": Decimal("0.0001")}, flugs.ConstraintViolated),
    ({"k": 1, "l": fractions.Fraction(1, 2)}, TypeError),
    ({"k": 1, "l": [1]}, TypeError),
    ({"k": 1, "nothing": 1}, flugs.NotFound),
    ({"k": 1, 7: 1}, TypeError),
    ({}, flugs.ConstraintViolated),
    ((1, 2), flugs.InvalidArgument),
    ("text", TypeError),
    (7, TypeError),
])
def test_rows_that_do_not_fit_are_refused(everything, row, error):
    with pytest.raises(error):
        everything.insert(row)
    assert len(everything) == 0


def test_rows_are_dicts_tuples_or_lists(sales):
    assert sales.insert({"item": "a"}) == 1
    assert sales.insert((None, "b", Decimal("1.5"), 3)) == 2
    assert sales.insert([None, "c", None, 4]) == 3
    assert sales.insert((10, "d", None, 4)) == 10
    assert [tuple(row.values()) for row in sales.rows("primary")] == [
        (1, "a", None, 1), (2, "b", Decimal("1.50"), 3), (3, "c", None, 4), (10, "d", None, 4)]


def test_many_rows_are_all_there_or_none(db, sales):
    assert sales.insert_rows({"item": f"i{k % 10}"} for k in range(5000)) == 5000
    assert len(sales) == 5000

    def broken():
        for k in range(3000):
            yield (None, f"i{k}", None, 1)
        raise KeyError("the source failed")

    with pytest.raises(KeyError):
        sales.insert_rows(broken())
    assert len(sales) == 5000
    with db.begin() as t:
        t.insert("sales", {"item": "before"})
        with pytest.raises(flugs.AlreadyExists):
            t.insert_rows("sales", [(9000 + k % 2500, "i", None, 1) for k in range(3000)])
        assert t.insert_rows("sales", iter([])) == 0
    assert len(sales) == 5001


def test_lists_of_rows_may_have_texts_that_are_made_on_the_way(sales):
    rows = ([None, "item " + str(k), None, 1] for k in range(3000))
    assert sales.insert_rows(rows) == 3000
    assert {row["item"] for row in sales.rows()} == {f"item {k}" for k in range(3000)}


def test_rows_are_updated_deleted_and_upserted(sales):
    sales.insert({"id": 1, "item": "a", "price": 2})
    sales.update(1, {"price": Decimal("3.25"), "item": "b"})
    assert sales.get(1) == {"id": 1, "item": "b", "price": Decimal("3.25"), "count": 1}
    assert sales.upsert({"id": 1, "item": "c"}) is False
    assert sales.get(1)["item"] == "c" and sales.get(1)["price"] == Decimal("3.25")
    assert sales.upsert({"id": 1, "item": "d"}, {"count": 9}) is False
    assert sales.get(1)["item"] == "c" and sales.get(1)["count"] == 9
    assert sales.upsert({"id": 2, "item": "new"}) is True
    assert sales.upsert((2, "whole", None, 5)) is False
    assert sales.get(2) == {"id": 2, "item": "whole", "price": None, "count": 5}
    sales.delete(2)
    assert sales.get(2) is None
    with pytest.raises(flugs.NotFound):
        sales.delete(2)


def test_keys_of_several_columns_take_tuples(db):
    lines = db.create_table("lines", {"a": flugs.int32, "b": flugs.string, "v": flugs.int64},
                            primary_key=flugs.Key(["a", "b"], ordered=True),
                            unique={"by_value": "v"})
    lines.insert_rows([(a, b, 10 * a + ord(b)) for a in range(3) for b in "xyz"])
    assert lines.get((1, "y")) == {"a": 1, "b": "y", "v": 10 + ord("y")}
    assert lines.get(10 + ord("y"), key="by_value")["b"] == "y"
    assert [row["b"] for row in lines.rows("primary", prefix=1)] == ["x", "y", "z"]
    assert [row["v"] for row in lines.rows("primary", lower=(1, "y"), upper=(2, "y"))] == [
        10 + ord("y"), 10 + ord("z"), 20 + ord("x")]
    assert [row["b"] for row in lines.rows("primary", prefix=2, reverse=True, limit=2)] == [
        "z", "y"]
    with pytest.raises(flugs.InvalidArgument):
        lines.get(1)
    with pytest.raises(flugs.NotFound):
        lines.get(1, key="no such key")
    with pytest.raises(ValueError):
        lines.rows("primary", prefix=1, lower=1)
    with pytest.raises(flugs.InvalidArgument):
        list(lines.rows("by_value", lower=1))
    assert sum(1 for _ in lines.rows()) == 9
    assert sum(1 for _ in lines.rows(limit=4)) == 4


def test_many_keys_are_looked_up_in_one_call(db):
    parts = db.create_table("parts", {"shop": flugs.int64, "item": flugs.string,
                                      "n": flugs.int32}, primary_key=["shop", "item"])
    parts.insert_rows((k // 100, f"item {k % 100}", k) for k in range(3000))
    keys = [(k // 100, f"item {k % 100}") for k in range(-1000, 4000)]
    found = parts.get_many(keys)
    assert found == [parts.get(key) for key in keys]
    assert sum(row is not None for row in found) == 3000
    with db.begin() as t:
        t.delete("parts", (0, "item 7"))
        assert t.get_many("parts", iter(keys[1006:1009])) == [
            {"shop": 0, "item": "item 6", "n": 6}, None, {"shop": 0, "item": "item 8", "n": 8}]
        assert t.get_many(parts, []) == []
        texts = ((0, "item " + str(k)) for k in range(3))
        assert t.get_many("parts", texts, "primary")[2]["n"] == 2
        with pytest.raises(flugs.InvalidArgument, match="a key of 1 values, expected 2") as error:
            t.get_many("parts", [(0, "item 1"), 5])
        assert (error.value.table, error.value.key, error.value.values) == ("parts", "primary", 5)
        with pytest.raises(flugs.InvalidArgument, match="item"):
            t.get_many("parts", [(0, 1.5)])
        with pytest.raises(TypeError):
            t.get_many("parts", 7)
        with pytest.raises(TypeError):
            t.get_many("parts", [(0, object())])
        with pytest.raises(flugs.NotFound):
            t.get_many("parts", keys, "no such key")
        with pytest.raises(ZeroDivisionError):
            t.get_many("parts", ((0, str(1 // (3 - k))) for k in range(5)))
        t.abort()
        with pytest.raises(flugs.Error):
            t.get_many("parts", keys)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="finalizers run between bytecodes")
def test_no_finalizer_ends_the_transaction_of_many_look_ups(db):
    texts = db.create_table("texts", {"id": flugs.int64, "text": flugs.string}, primary_key="id")
    texts.insert_rows((k, f"the text of row {k}") for k in range(1000))
    refused = []

    class Ends:
        """Part of a cycle, so that the collector finalizes it, in the midst of the dicts."""
        def __init__(self, transaction):
            self.transaction = transaction
            self.itself = self

        def __del__(self):
            try:
                self.transaction.abort()
            except flugs.Busy as error:
                refused.append(error)

    with db.begin(read_only=True) as t:
        Ends(t)
        before = gc.get_threshold()
        gc.set_threshold(10)
        try:
            rows = t.get_many("texts", range(1000))
        finally:
            gc.set_threshold(*before)
        assert [row["text"] for row in rows] == [f"the text of row {k}" for k in range(1000)]
        assert refused and t.state == "open"


def test_schemas_change(db, sales):
    sales.insert({"item": "a"})
    db.add_column("sales", "note", flugs.string.default("none"))
    assert sales.get(1)["note"] == "none" and sales.columns[-1] == "note"
    db.rename_column("sales", "note", "remark")
    db.drop_column(sales, "price")
    assert sales.columns == ["id", "item", "count", "remark"]
    assert sales.insert((None, "b", 2, "r")) == 2
    assert sales.get(2) == {"id": 2, "item": "b", "count": 2, "remark": "r"}
    db.add_key("sales", "by_remark", flugs.Key("remark", ordered=True), unique=True)
    assert sales.get("r", key="by_remark")["id"] == 2
    assert sales.keys == {"primary": ("id",), "by_item": ("item",), "by_remark": ("remark",)}
    db.drop_key("sales", "by_remark")
    assert "by_remark" not in sales.keys
    db.rename_table("sales", "sold")
    assert db.tables() == ["sold"] and "sales" not in db and len(db["sold"]) == 2
    with pytest.raises(flugs.NotFound):
        sales.get(1)
    db.drop_table("sold")
    assert db.tables() == []


def test_layouts_of_the_delta(db):
    apart = db.create_table("apart", {"n": flugs.int64, "t": flugs.string}, layout="columns")
    assert apart.layout == "columns"
    apart.insert_rows([(n, f"text {n}") for n in range(100)])
    db.set_layout(apart, "rows")
    apart.insert_rows([(n, None) for n in range(100, 200)])
    assert apart.layout == "rows"
    assert sorted(row[0] for row in apart.query()) == list(range(200))
    assert db.create_table("together", {"n": flugs.int64}).layout == "rows"
    groups = [["n", "t"], ["u"]]
    columns = {"n": flugs.int64, "t": flugs.string, "u": flugs.int32}
    grouped = db.create_table("grouped", columns, layout=groups)
    assert grouped.layout == groups
    grouped.insert_rows([(1, "one", 10), (2, None, None)])
    assert list(grouped.query()) == [(1, "one", 10), (2, None, None)]
    db.set_layout(grouped, (("u", "n"),))
    assert grouped.layout == [["u", "n"]]
    with pytest.raises(flugs.InvalidArgument, match="no column 'x'"):
        db.set_layout(grouped, [["x"]])
    with pytest.raises(TypeError):
        db.set_layout(grouped, 7)
    with pytest.raises(ValueError, match="layout must be"):
        db.set_layout(apart, "diagonal")
    with pytest.raises(ValueError, match="layout must be"):
        db.create_table("diagonal", {"n": flugs.int64}, layout="diagonal")


def test_merges_only_when_asked(tmp_path):
    with flugs.open(tmp_path / "pool", automatic_merges=False) as db:
        table = db.create_table("t", {"n": flugs.int64})
        table.insert_rows([(n,) for n in range(1000)])
        assert db.merge(table)["rows"] == 1000


def test_tables_are_made_once_and_described(db):
    columns = {"a": flugs.int64.not_null(), "b": flugs.decimal(2).default(Decimal("0.50")),
               "c": flugs.string.unique()}
    made = db.create_table("t", columns, primary_key="a", checks={"positive": flugs.col("a") > 0})
    again = db.create_table("t", columns, primary_key="a", if_not_exists=True)
    assert made.name == again.name == db.table("t").name == "t" and repr(made) == "<flugs.Table t>"
    with pytest.raises(flugs.AlreadyExists):
        db.create_table("t", columns)
    with pytest.raises(flugs.InvalidArgument):
        db.create_table("t", {"a": flugs.string}, if_not_exists=True)
    with pytest.raises(TypeError):
        db.create_table("u", {"a": int})
    with pytest.raises(TypeError):
        db.create_table("u", {"a": flugs.int64}, primry_key="a")
    assert made.schema["b"] == flugs.decimal(2).default(Decimal("0.50"))
    assert made.keys == {"primary": ("a",), "c": ("c",)}
    with pytest.raises(flugs.ConstraintViolated):
        made.insert({"a": -1})
    made.insert({"a": 1})
    assert made.get(1)["b"] == Decimal("0.50")


def test_foreign_keys_act(db):
    db.create_table("p", {"id": flugs.int64}, primary_key="id")
    child = db.create_table(
        "c", {"id": flugs.int64, "p": flugs.int64}, primary_key="id",
        foreign_keys={"to_p": flugs.ForeignKey("p", "p", on_delete="cascade")})
    db["p"].insert((1,))
    child.insert((1, 1))
    with pytest.raises(flugs.ConstraintViolated):
        child.insert((2, 7))
    db["p"].delete(1)
    assert len(child) == 0


def test_times_and_scalars_of_other_packages(db, everything):
    pandas = pytest.importorskip("pandas")
    numpy = pytest.importorskip("numpy")
    for wrong in (pandas.NaT, pandas.Timestamp("2024-05-06 07:08:09.123456789"),
                  pandas.Timestamp("2024-05-06 07:08:09.000000001", tz="Europe/Berlin")):
        with pytest.raises(ValueError, match="a time with nanoseconds|no time, as NaT is"):
            everything.insert({"k": 1, "t": wrong})
    everything.insert({"k": 1, "t": pandas.Timestamp("2024-05-06 07:08:09.123456"),
                       "b": numpy.bool_(True), "i": numpy.int16(-3), "l": numpy.int64(2**40),
                       "f": numpy.float32(1.5)})
    everything.insert({"k": 2, "b": numpy.bool_(False), "f": numpy.float16(-0.25)})
    row = everything.get(1)
    assert row["t"] == datetime.datetime(2024, 5, 6, 7, 8, 9, 123456)
    assert (row["b"], row["i"], row["l"], row["f"]) == (True, -3, 2**40, 1.5)
    row = everything.get(2)
    assert (row["b"], row["f"]) == (False, -0.25)


@pytest.mark.parametrize("many", [False, True])
def test_an_object_may_change_the_dict_of_its_row(everything, many):
    class Clearer:
        def __init__(self, row, number):
            self.row, self.number = row, number

        def __index__(self):
            self.row["s"] = None
            # What is freed is used again.
            self.other = ["?" * len(f"text {n:050}") for n in range(100)]
            return self.number

    for k in range(10):
        row = {"s": f"text {k:050}"}
        row["k"] = Clearer(row, k)
        everything.insert_rows([row]) if many else everything.insert(row)
        assert everything.get(k)["s"] == f"text {k:050}"


def test_a_mapping_may_make_its_values(everything):
    class Made:
        def keys(self):
            return ["k", "s"]

        def __getitem__(self, name):
            return 1 if name == "k" else "text" + "!" * 50

    everything.insert(Made())
    assert everything.get(1)["s"] == "text" + "!" * 50
