"""Queries with operators, and their rows as objects."""

import datetime
from decimal import Decimal

import flugs
import pytest
from flugs import col


@pytest.fixture(name="lines")
def table_of_lines(db):
    lines = db.create_table(
        "lines", {"id": flugs.int64, "item": flugs.string, "price": flugs.decimal(2),
                  "day": flugs.date, "weight": flugs.double}, primary_key="id")
    lines.insert_rows(
        (k, f"item {k % 5}" if k % 11 else None, Decimal(k) / 4,
         datetime.date(2024, 1, 1) + datetime.timedelta(days=k % 400),
         k / 2 if k % 7 else None) for k in range(1000))
    return lines


def ids(query):
    return sorted(row[0] for row in query.select("id"))


def day_of(k):
    return datetime.date(2024, 1, 1) + datetime.timedelta(days=k % 400)


CONDITIONS = [
    (col("id") < 10, lambda k: k < 10),
    (col("id") <= 10, lambda k: k <= 10),
    (10 > col("id"), lambda k: k < 10),
    (col("id") == 10, lambda k: k == 10),
    (col("id") != 10, lambda k: k != 10),
    ((col("id") >= 10) & (col("id") < 20), lambda k: 10 <= k < 20),
    ((col("id") < 10) | (col("id") > 990), lambda k: k < 10 or k > 990),
    (~(col("id") < 990), lambda k: k >= 990),
    (col("id").between(5, 7), lambda k: 5 <= k <= 7),
    (col("id").is_in([1, 5, 5000]), lambda k: k in (1, 5)),
    (col("item").is_null(), lambda k: k % 11 == 0),
    (col("item").is_not_null() & (col("id") < 30), lambda k: k % 11 and k < 30),
    (col("item").starts_with("item 3"), lambda k: k % 11 and k % 5 == 3),
    (col("item").ends_with("2"), lambda k: k % 11 and k % 5 == 2),
    (col("item").contains("em 1"), lambda k: k % 11 and k % 5 == 1),
    (col("item").substring(6, 1) == "4", lambda k: k % 11 and k % 5 == 4),
    (col("price") > Decimal("200.25"), lambda k: k / 4 > 200.25),
    (col("price") * 2 == col("weight"), lambda k: k % 7),
    (col("day") == datetime.date(2025, 1, 1), lambda k: k % 400 == 366),
    ((col("day").year() == 2025) & (col("day").month() == 2) & (col("day").day() == 3),
     lambda k: k % 400 == 399),
    (col("id") % 100 == 7, lambda k: k % 100 == 7),
    (col("id") / 2 == 3.5, lambda k: k == 7),
    (-col("id") == -4, lambda k: k == 4),
    (1000 - col("id") == 4, lambda k: k == 996),
    (col("id").to_double() == 3.0, lambda k: k == 3),
    (col("weight") > 490.0, lambda k: k % 7 and k / 2 > 490),
    (flugs.case_when([(col("id") < 3, 1), (col("id") < 6, 2)], 0) == 2, lambda k: 3 <= k < 6),
    (flugs.lit(True) & (col("id") < 2), lambda k: k < 2),
    (col("item").like("%em _"), lambda k: k % 11),
    (col("item").like("item!%", escape="!"), lambda k: False),
    (col("item").upper() == "ITEM 3", lambda k: k % 11 and k % 5 == 3),
    (flugs.concat(col("item"), "/", col("id").to_text()) == "item 2/7", lambda k: k == 7),
    (flugs.concat(" ", "a ").trim().length() + col("id") == 8, lambda k: k == 7),
    (flugs.lit("  x ").trim_left() == "x ", lambda k: True),
    (flugs.lit("  x ").trim_right().byte_length() == 3, lambda k: True),
    (col("item").lower().position("m") == 4, lambda k: k % 11),
    (col("item").first_byte() == ord("i"), lambda k: k % 11),
    (col("price").round() == 100, lambda k: 99.5 <= k / 4 < 100.5),
    (col("id").round(-2) == 100, lambda k: 50 <= k < 150),
    ((col("id") - 500).absolute() < 3, lambda k: abs(k - 500) < 3),
    (col("price").floor() + col("price").ceiling() == 21, lambda k: 40 < k < 44),
    (col("id").square_root() == 9, lambda k: k == 81),
    (col("id").logarithm().exponential().round() == 9, lambda k: k == 9),
    (col("id").power(2) == 81, lambda k: k == 9),
    (col("id").quotient(100) == 7, lambda k: k // 100 == 7),
    (col("weight").to_int64() == 7, lambda k: k % 7 and 7 <= k / 2 < 8),
    (col("id").to_decimal(1) == Decimal("7.0"), lambda k: k == 7),
    (col("id").to_text().to_int64() == 7, lambda k: k == 7),
    (col("day").weekday() == 7, lambda k: day_of(k).isoweekday() == 7),
    (col("day").quarter() == 2, lambda k: 4 <= day_of(k).month <= 6),
    (col("day").day_of_year() == 60, lambda k: day_of(k).timetuple().tm_yday == 60),
    (col("day").truncate_time("month") == datetime.date(2024, 3, 1),
     lambda k: (day_of(k).year, day_of(k).month) == (2024, 3)),
    (col("day").add_months(1) == datetime.date(2024, 2, 29),
     lambda k: day_of(k) in [datetime.date(2024, 1, d) for d in (29, 30, 31)]),
    (col("day").to_timestamp().hour() + col("day").minute() + col("day").second() == 0,
     lambda k: True),
    (flugs.lit("2024-01-05").to_date() == col("day"), lambda k: k % 400 == 4),
]


@pytest.mark.parametrize("condition, expected", CONDITIONS, ids=[repr(c) for c, _ in CONDITIONS])
def test_conditions(lines, condition, expected):
    assert ids(lines.query().where(condition)) == [k for k in range(1000) if expected(k)]


def test_an_aggregate_of_some_rows(lines):
    row = lines.query().group_by(
        [], agg=[flugs.count().where(col("id") < 7), flugs.sum("id").where(col("id") > 997),
                 flugs.count_distinct("item").where(col("id") < 3), flugs.count()]).fetchall()
    assert row == [(7, 998 + 999, 2, 1000)]


def test_functions_refuse_what_they_cannot_use():
    with pytest.raises(ValueError, match="unit: expected year"):
        col("day").truncate_time("decade")
    with pytest.raises(ValueError, match="one byte"):
        col("item").like("a", escape="ab")


def test_groups_are_sorted_and_limited(db, lines):
    query = (db.query("lines").where(col("item").is_not_null())
             .group_by("item", agg=[flugs.sum("price").alias("revenue"), flugs.count().alias("n"),
                                    flugs.min("id"), flugs.max(col("id")), flugs.avg("weight")])
             .order_by("revenue", descending=True).limit(3, offset=1))
    of_item = {}
    for k in range(1000):
        if k % 11:
            of_item.setdefault(f"item {k % 5}", []).append(k)
    expected = sorted(of_item.items(), key=lambda one: -sum(one[1]))[1:4]
    rows = query.fetchall()
    assert [row[:5] for row in rows] == [
        (item, sum(map(Decimal, of)) / 4, len(of), min(of), max(of)) for item, of in expected]
    assert query.run().columns == ["item", "revenue", "n", "min(id)", "max(id)", "avg(weight)"]
    assert "group by item" in query.explain() and len(lines) == 1000


def test_aggregates_without_keys(lines):
    row = lines.query().group_by(agg=[
        flugs.count("item"), flugs.count_distinct("item"), flugs.variance("weight"),
        flugs.stddev(col("weight") * 2)]).fetchone()
    assert row[:2] == (909, 5) and 4 * row[2] == pytest.approx(row[3] ** 2)


def test_joins(db, lines):
    db.create_table("items", {"name": flugs.string, "owner": flugs.string}, primary_key="name")
    db["items"].insert_rows([("item 1", "Ann"), ("item 2", None), ("other", "Bob")])
    items = db.query("items")
    few = lines.query().where(col("id") < 10).select("id", "item")
    inner = few.join(items, [("item", "name")])
    assert sorted(inner.select("id", "owner")) == [(1, "Ann"), (2, None), (6, "Ann"), (7, None)]
    assert len(few.join(items, [("item", col("name"))], how="left").fetchall()) == 10
    assert ids(few.join(items, [("item", "name")], how="semi")) == [1, 2, 6, 7]
    assert ids(few.join(items, [("item", "name")], how="anti")) == [0, 3, 4, 5, 8, 9]
    assert ids(few.join(items, [("item", "name")], also=col("owner") == "Ann")) == [1, 6]
    other = few.prefixed("other").select(col("other.id").alias("id"), "other.item")
    assert len(few.select("id").join(other.select("id"), "id", how="semi").fetchall()) == 10
    with pytest.raises(ValueError):
        few.join(items, [("item", "name")], how="outer")


def test_distinct_and_order(lines):
    assert [row[0] for row in lines.query().select("item").distinct().order_by("item")] == [
        None, "item 0", "item 1", "item 2", "item 3", "item 4"]
    ordered = lines.query().order_by("item", "id", descending=[False, True]).select("id")
    assert next(iter(ordered)) == (990,)
    with pytest.raises(ValueError):
        lines.query().order_by("item", descending=[True, False])


def test_a_query_of_a_transaction_sees_its_writes(db, lines):
    with db.begin() as t:
        t.insert("lines", {"id": 5000, "item": "mine"})
        mine = t.query("lines").where(col("id") >= 1000)
        assert [row["item"] for row in mine.dicts()] == ["mine"]
        assert lines.query().where(col("id") >= 1000).fetchall() == []
    assert lines.query().where(col("id") >= 1000).fetchone()[1] == "mine"
    with pytest.raises(flugs.InvalidArgument):
        mine.fetchall()


def test_results_give_rows_once(lines):
    with lines.query().order_by("id").run(threads=1) as result:
        assert result.fetchone()[0] == 0
        assert [row[0] for row in result.fetchmany(2)] == [1, 2]
        assert "scan lines" in result.explain()
        assert len(result.fetchall()) == 997
        assert result.fetchone() is None and result.fetchall() == [] and result.fetchmany(3) == []
        assert ", 1000 selected" in result.explain()
    assert "scan lines" in result.explain()
    result = lines.query().run()
    next(result)
    result.close()
    with pytest.raises(flugs.Error):
        result.fetchall()


def test_a_closed_result_gives_nothing(db, lines):
    with db.begin() as t:
        for result in (t.query("lines").run(), lines.query().run()):
            result.fetchone()
            result.close()
            result.close()
            assert result.explain() == ""
            for call in (result.fetchall, result.fetchone, lambda: next(result.batches())):
                with pytest.raises(flugs.InvalidArgument, match="the result is closed"):
                    call()
        assert t.state == "open"


def test_results_and_walks_go_on_after_a_commit_that_is_refused(db, sales):
    sales.insert_rows((None, "a", None, k) for k in range(100))
    t = db.begin()
    result, walk = t.query("sales").run(), t.rows("sales", "primary")
    next(walk)
    with pytest.raises(flugs.InvalidArgument):
        t.commit("soon", soon=-1)
    assert t.state == "open"
    assert len(list(result)) == 100 and len(list(walk)) == 99
    result, walk = t.query("sales").run(), t.rows("sales", "primary")
    t.commit()
    for rows in (result, walk):
        with pytest.raises(flugs.InvalidArgument, match="committed"):
            next(rows)


def test_batches_give_each_row_once(lines):
    # More threads may make a batch each.
    result = lines.query().run(threads=1)
    assert len(list(result.batches())) == 1
    assert list(result.batches()) == [] and result.fetchall() == []
    result = lines.query().run(threads=1)
    result.fetchone()
    with pytest.raises(ValueError, match="take these first"):
        next(result.batches())
    assert len(result.fetchall()) == 999 and list(result.batches()) == []


def test_rows_beyond_the_memory_of_a_query_go_to_a_folder(db):
    table = db.create_table("many", {"id": flugs.int64, "name": flugs.string}, primary_key="id")
    table.insert_rows([(k * 7919 % 30_000, f"name {k % 977}") for k in range(30_000)])
    ordered = db.query("many").order_by("id").select("id")
    grouped = db.query("many").group_by("id", agg=[flugs.count().alias("n")])
    for query in (ordered, grouped):
        with pytest.raises(flugs.IoError, match="/nowhere/at all"):
            query.run(memory_bytes_max=1_500_000, temporary_folder="/nowhere/at all").fetchall()
        rows = query.run(memory_bytes_max=1_500_000, temporary_folder="/tmp").fetchall()
        assert sorted(row[0] for row in rows) == list(range(30_000))
    assert [row[0] for row in ordered.run(memory_bytes_max=1_500_000)] == list(range(30_000))


def test_wrong_queries_say_why(db, lines):
    with pytest.raises(flugs.InvalidArgument, match="nothing"):
        db.query("lines").where(col("nothing") == 1).fetchall()
    with pytest.raises(flugs.NotFound):
        db.query("nothing")
    with pytest.raises(flugs.Overflow):
        lines.query().select(col("id") + (2**63 - 1)).fetchall()
    with pytest.raises(flugs.OutOfMemory):
        lines.query().order_by("item").run(memory_bytes_max=1000).fetchall()
    with pytest.raises(TypeError, match="use &"):
        bool(col("a") == 1)
    with pytest.raises(TypeError):
        lines.query().select(7)
    with pytest.raises(TypeError):
        col("a") == object()  # pylint: disable=expression-not-assigned
