"""Tables as LazyFrames of polars, which DuckDB reads as well."""

import datetime
from decimal import Decimal

import flugs
import pytest

polars = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

from flugs import lazy  # noqa: E402  pylint: disable=wrong-import-position

C = polars.col


@pytest.fixture(name="table")
def table_to_scan(db):
    table = db.create_table(
        "t", {"id": flugs.int64, "name": flugs.string, "price": flugs.decimal(2),
              "day": flugs.date, "at": flugs.timestamp, "w": flugs.double, "ok": flugs.boolean,
              "raw": flugs.binary, "n": flugs.int32}, primary_key="id")
    table.insert_rows(
        (k, f"name {k % 9}" if k % 5 else None, Decimal(k) / 4,
         datetime.date(2024, 1, 1) + datetime.timedelta(days=k % 50),
         datetime.datetime(2024, 1, 1) + datetime.timedelta(seconds=k), k / 2, k % 2 == 0,
         bytes([k % 7]), k % 3 if k % 4 else None) for k in range(2000))
    db.merge("t")
    return table


def guarded(name, values, guard=None):
    """`name in values` as DuckDB writes it."""
    return (polars.when(C(guard or name).is_null()).then(polars.lit(None, dtype=polars.Boolean))
            .otherwise(C(name).is_in(values)))


PUSHED = [
    C("id") > 1990,
    (C("id") > 10) & (C("id") <= 20),
    (C("id") < 5) | (C("name") == "name 3"),
    C("name") == "name 3",
    C("name") != "name 3",
    "name 3" == C("name"),
    C("name").is_null(),
    C("name").is_not_null() & (C("n") == 2),
    ~(C("id") > 5),
    C("id").is_in([1, 7, 5000]),
    C("name").is_in(["name 1", "name 2"]),
    C("id").is_between(5, 9),
    C("id").is_between(5, 9, closed="none"),
    C("id").is_between(5, 9, closed="left"),
    C("id").is_between(5, 9, closed="right"),
    C("price") > Decimal("490.25"),
    C("day") >= datetime.date(2024, 2, 10),
    C("at") < datetime.datetime(2024, 1, 1, 0, 5),
    C("w") < 3.5,
    C("name").str.starts_with("name 4"),
    C("name").str.ends_with("5"),
    C("name").str.contains("me 6", literal=True),
    C("raw") == b"\x03",
    C("n") == C("id"),
    guarded("name", ["name 1", "name 2"]),
    ~guarded("name", ["name 1", "name 2"]),
    guarded("n", [1]) & (C("id") < 100),
]
LEFT = [
    C("ok"),
    C("name").str.len_bytes() > 3,
    C("w").is_nan(),
    C("w") == float("nan"),
    C("n").is_in([1, None]),
    (C("id") + 1) * 2 > 3990,
    C("name").str.contains("name [12]"),
    C("id") == polars.lit(None),
    guarded("name", ["name 1"], guard="n"),
    guarded("n", [1, None]),
    polars.when(C("n").is_null()).then(True).otherwise(C("n").is_in([1])),
    polars.when(C("n").is_null()).then(None).otherwise(C("n").is_not_null()),
    polars.when(C("n").is_not_null()).then(None).otherwise(C("n").is_in([1])),
]


@pytest.mark.parametrize("predicate", PUSHED + LEFT, ids=str)
def test_filters_give_what_polars_gives(table, predicate):
    whole = table.lazy().collect()
    expected = whole.filter(predicate).sort("id")
    assert table.lazy().filter(predicate).collect().sort("id").equals(expected)
    mixed = table.lazy().filter(predicate & (C("name").str.len_bytes() > 2) & (C("id") < 1995))
    expected = whole.filter(predicate & (C("name").str.len_bytes() > 2) & (C("id") < 1995))
    assert mixed.select("w").collect().sort("w").equals(expected.select("w").sort("w"))


@pytest.mark.parametrize("predicate", PUSHED, ids=str)
def test_filters_are_left_to_flugs(table, predicate):
    conditions, is_whole = lazy.translate(predicate, table.schema)
    assert conditions and is_whole


@pytest.mark.parametrize("predicate", LEFT, ids=str)
def test_filters_are_left_to_polars(table, predicate):
    conditions, is_whole = lazy.translate(predicate, table.schema)
    assert not conditions and not is_whole
    conditions, is_whole = lazy.translate((C("id") > 3) & predicate, table.schema)
    assert len(conditions) == 1 and not is_whole


def test_large_filters_are_left_to_polars(table):
    numbers = range(0, 70_000, 1000)
    any_of, all_of = C("id") == 0, C("id") != 1
    for k in range(1, 400):
        any_of, all_of = any_of | (C("id") == k), all_of & (C("id") != k + 1)
    for predicate in (C("id").is_in(list(range(70_000))), any_of, all_of,
                      (C("id") > 5) & C("id").is_in(list(range(20_000))) & (C("n") == 1)):
        expected = table.lazy().collect().filter(predicate).sort("id")
        assert table.lazy().filter(predicate).collect().sort("id").equals(expected)
    assert lazy.translate(C("id").is_in(list(numbers)), table.schema)[1]
    conditions, is_whole = lazy.translate(predicate, table.schema)
    assert len(conditions) == 2 and not is_whole


@pytest.fixture(name="seen")
def plans_that_run(monkeypatch):
    """The plans of the queries that run."""
    seen = []
    of_result = flugs.Query.run

    def run(self, *arguments):
        seen.append(self.explain())
        return of_result(self, *arguments)

    monkeypatch.setattr(flugs.Query, "run", run)
    return seen


def test_only_wanted_columns_and_rows_are_read(table, seen):
    frame = table.lazy().filter(C("name") == "name 1").select("price").collect()
    assert frame.columns == ["price"] and frame.height == 178
    assert "name = 'name 1'" in seen[-1]
    assert table.lazy().head(7).collect().height == 7
    assert "limit 7" in seen[-1]
    assert table.lazy().select(polars.len()).collect().item() == 2000
    assert table.lazy().filter(C("name").str.len_bytes() > 3).head(3).collect().height == 3
    assert len(seen) == 4


def test_schema_and_types(table):
    frame = table.lazy().collect()
    assert frame.schema == table.lazy().collect_schema()
    assert frame.schema == {
        "id": polars.Int64, "name": polars.String, "price": polars.Decimal(19, 2),
        "day": polars.Date, "at": polars.Datetime("us"), "w": polars.Float64, "ok": polars.Boolean,
        "raw": polars.Binary, "n": polars.Int32}


def test_groups_and_joins_above_it(table):
    frame = (table.lazy().filter(C("id") < 1000).group_by("name")
             .agg(polars.len().alias("rows"), C("w").sum()).sort("name").collect())
    assert frame["rows"].sum() == 1000 and frame.height == 10


def test_duckdb_reads_it_with_pushdown(table, seen):
    lf = table.lazy()  # noqa: F841  pylint: disable=unused-variable
    assert duckdb.sql("select count(*) from lf").fetchall() == [(2000,)]
    assert duckdb.sql("select id, price from lf where name = 'name 3' and id between 10 and 40"
                      " order by id").fetchall() == [
        (12, Decimal("3.00")), (21, Decimal("5.25")), (39, Decimal("9.75"))]
    assert len(seen) == 2
    for condition in ("name = 'name 3'", "id >= 10", "id <= 40"):
        assert condition in seen[-1]


IN_DUCKDB = [
    ("name in ('name 1', 'name 2')", "name in ('name 1', 'name 2')",
     lambda k: k % 9 in (1, 2) and k % 5),
    ("name not in ('name 1', 'name 2')", "not (name in ('name 1', 'name 2'))",
     lambda k: k % 9 not in (1, 2) and k % 5),
    ("id in (3, 5, 1000, 5000)", "id in (3, 5, 1000, 5000)", lambda k: k in (3, 5, 1000)),
    ("n in (1)", "n in (1)", lambda k: k % 3 == 1 and k % 4),
    ("price in (1.25, 2.5)", "price in (1.25, 2.50)", lambda k: k in (5, 10)),
    ("day in (date '2024-01-03', date '2024-01-05')", "day in ", lambda k: k % 50 in (2, 4)),
]


@pytest.mark.parametrize("condition, plan, expected", IN_DUCKDB, ids=[c[0] for c in IN_DUCKDB])
def test_in_of_duckdb_is_left_to_flugs(table, seen, condition, plan, expected):
    lf = table.lazy()  # noqa: F841  pylint: disable=unused-variable
    rows = duckdb.sql(f"select id from lf where {condition} order by id").fetchall()
    assert rows == [(k,) for k in range(2000) if expected(k)]
    assert len(seen) == 1 and plan in seen[0], seen


def test_an_empty_table(db):
    empty = db.create_table("empty", {"a": flugs.int64, "s": flugs.string})
    assert empty.lazy().collect().shape == (0, 2)
    assert empty.lazy().filter(C("a") > 1).select("s").collect().shape == (0, 1)
