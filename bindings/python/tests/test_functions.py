"""Functions of expressions, with DuckDB as the judge: drawn values, in the delta and in main."""

import datetime
import math
import random
from decimal import Decimal

import flugs
import pytest
from flugs import col

duckdb = pytest.importorskip("duckdb")

ROWS = 1500
LETTERS = ["a", "B", "c", " ", "%", "_", "ä", "€", "7", "-"]
COLUMNS = {"id": flugs.int64, "kind": flugs.string, "text": flugs.string, "i": flugs.int64,
           "x": flugs.decimal(3), "r": flugs.double, "day": flugs.date, "moment": flugs.timestamp}

# Each function, and the same in DuckDB's SQL.
PAIRS = [
    (col("text").like("%a_B%"), "text like '%a_B%'"),
    (col("text").like("_%_"), "text like '_%_'"),
    (col("text").like("%x%%", escape="x"), "text like '%x%%' escape 'x'"),
    (col("kind").like("k%1"), "kind like 'k%1'"),
    (col("text").matches("[aä]{2}|^.?$"), "regexp_matches(text, '[aä]{2}|^.?$')"),
    (col("kind").matches("(?i)KIND 1"), "regexp_matches(kind, '(?i)KIND 1')"),
    (col("text").regexp_extract("[a-z]+"), "regexp_extract(text, '[a-z]+')"),
    (col("text").regexp_extract("(a|B)(.)?([^c])", 2),
     "regexp_extract(text, '(a|B)(.)?([^c])', 2)"),
    (col("kind").regexp_extract(r"\d+$").to_int64(), r"regexp_extract(kind, '\d+$')::bigint"),
    (col("text").regexp_replace("[ab]*", r"<\0>"), r"regexp_replace(text, '[ab]*', '<\0>')"),
    (col("text").regexp_replace("[ab]*", r"<\0>", all=True),
     r"regexp_replace(text, '[ab]*', '<\0>', 'g')"),
    (col("text").regexp_replace("(.)(€)", r"\2\\\1", all=True),
     r"regexp_replace(text, '(.)(€)', '\2\\\1', 'g')"),
    (col("kind").regexp_replace("[a-z]+ ", ""), "regexp_replace(kind, '[a-z]+ ', '')"),
    (col("text").length(), "length(text)"),
    (col("text").byte_length(), "strlen(text)"),
    (flugs.concat(col("kind"), "-", col("text")), "kind || '-' || text"),
    (col("kind").upper(), "upper(kind)"),
    (col("text").lower(), "translate(text, 'BC', 'bc')"),
    (col("text").trim(), "trim(text)"),
    (col("text").trim_left(), "ltrim(text)"),
    (col("text").trim_right(), "rtrim(text)"),
    (col("text").position("a"), "position('a' in text)"),
    (col("text").position(""), "position('' in text)"),
    (col("i").absolute(), "abs(i)"),
    (col("i").quotient(7), "i // 7"),
    (col("i").quotient(col("id") % 3), "i // nullif(id % 3, 0)"),
    (col("i").round(-2), "round(i, -2)"),
    (col("i").to_text(), "i::varchar"),
    (col("i").to_text().to_int64(), "i"),
    (col("text").to_int64(), "try_cast(case when text ~ '^-?[0-9]+$' then text end as bigint)"),
    (col("x").floor(), "floor(x)::bigint"),
    (col("x").ceiling(), "ceil(x)::bigint"),
    (col("x").round(1), "round(x, 1)"),
    (col("x").round(), "round(x, 0)"),
    (col("x").to_int64(), "trunc(x)::bigint"),
    (col("x").to_decimal(1), "round(x, 1)"),
    (col("x").to_decimal(5), "x::decimal(18, 5)"),
    (col("x").to_text(), "x::varchar"),
    (col("x").absolute(), "abs(x)"),
    (col("r").floor(), "floor(r)"),
    (col("r").ceiling(), "ceil(r)"),
    (col("r").to_int64(), "trunc(r)::bigint"),
    (col("r").absolute().square_root(), "sqrt(abs(r))"),
    (col("r").exponential().logarithm(), "ln(exp(r))"),
    (col("r").power(2), "pow(r, 2)"),
    (col("day").weekday(), "isodow(day)"),
    (col("day").quarter(), "quarter(day)"),
    (col("day").day_of_year(), "dayofyear(day)"),
    (col("day").add_months(col("id") % 50 - 25), "(day + to_months((id % 50 - 25)::int))::date"),
    (col("day").to_text(), "day::varchar"),
    (col("day").to_text().to_date(), "day"),
    (col("moment").hour(), "hour(moment)"),
    (col("moment").minute(), "minute(moment)"),
    (col("moment").second(), "second(moment)"),
    (col("moment").to_date(), "moment::date"),
    (col("moment").add_months(7), "moment + interval 7 month"),
    (col("day").to_timestamp(), "day::timestamp"),
]
for UNIT in ("year", "quarter", "month", "week", "day", "hour", "minute", "second"):
    PAIRS += [(col("day").truncate_time(UNIT), f"date_trunc('{UNIT}', day)::date"),
              (col("moment").truncate_time(UNIT), f"date_trunc('{UNIT}', moment)")]


def drawn_row(k):
    drawn = random.Random(k)
    day = datetime.date(1970, 1, 1) + datetime.timedelta(days=drawn.randrange(-200_000, 200_000))
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(
        microseconds=drawn.randrange(-10**15, 10**15))
    row = [f"kind {drawn.randrange(20)}",
           "".join(drawn.choice(LETTERS) for _ in range(drawn.randrange(8))),
           drawn.randrange(-10_000, 10_000), Decimal(drawn.randrange(-10**7, 10**7)) / 1000,
           drawn.uniform(-20, 20), day, moment]
    return [k] + [None if drawn.random() < 0.1 else value for value in row]


@pytest.fixture(name="judge", scope="module")
def rows_in_duckdb():
    with duckdb.connect() as con:
        con.execute("create table t (id bigint, kind varchar, text varchar, i bigint, "
                    "x decimal(18, 3), r double, day date, moment timestamp)")
        con.executemany("insert into t values (?, ?, ?, ?, ?, ?, ?, ?)",
                        [drawn_row(k) for k in range(ROWS)])
        yield con


def same(a, b):
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-12)
    return a == b


@pytest.fixture(name="table", params=["delta", "main"])
def rows_in_flugs(db, request):
    table = db.create_table("t", COLUMNS, primary_key="id")
    table.insert_rows(drawn_row(k) for k in range(ROWS))
    if request.param == "main":
        db.merge("t")
    return table


def test_functions_give_what_duckdb_gives(table, judge):
    for function, sql in PAIRS:
        found = table.query().select("id", function.alias("v")).order_by("id").fetchall()
        expected = judge.execute(f"select id, {sql} from t order by id").fetchall()
        wrong = [(a, b) for a, b in zip(found, expected, strict=True) if not same(a[1], b[1])]
        assert not wrong, (repr(function), wrong[:3])


def test_quantiles_are_duckdbs(table, judge):
    parts = ("0", "0.07", "0.25", "0.5", "0.9", "1")
    for column in ("id", "text", "i", "x", "r", "day", "moment"):
        found = table.query().group_by("kind", agg=[
            flugs.quantile(column, float(part)).alias(part) for part in parts])
        quantiles = ", ".join(f"quantile_disc({column}, {part})" for part in parts)
        expected = judge.execute(f"select kind, {quantiles} from t group by all").fetchall()
        assert sorted(found.fetchall(), key=str) == sorted(expected, key=str)
    found = table.query().group_by("kind", agg=[flugs.median(c) for c in ("id", "i", "x", "r")])
    expected = judge.execute("select kind, median(id), median(i), median(x::double), median(r) "
                             "from t group by all").fetchall()
    assert {row[0]: pytest.approx(row[1:]) for row in found.fetchall()} == {
        row[0]: row[1:] for row in expected}


def test_distinct_values_are_counted_approximately(table, judge):
    columns = ("id", "text", "i", "x", "r", "day", "moment", "kind")
    found = table.query().group_by(agg=[flugs.approx_count_distinct(c) for c in columns])
    expected = judge.execute("select " + ", ".join(
        f"count(distinct {column})" for column in columns) + " from t").fetchone()
    assert found.fetchone() == pytest.approx(expected, rel=0.06)
    assert found.fetchone()[-1] == 20  # kinds
    by_kind = table.query().group_by("kind", agg=flugs.approx_count_distinct("id")).fetchall()
    exact = dict(table.query().group_by("kind", agg=flugs.count_distinct("id")).fetchall())
    assert dict(by_kind) == pytest.approx(exact, rel=0.06)


def test_groups_of_functions_are_duckdbs(table, judge):
    found = table.query().group_by(
        col("text").upper().alias("k"), col("day").truncate_time("year").alias("y"),
        agg=[flugs.count().where(col("i") > 0), flugs.min(col("kind").upper()),
             flugs.sum("x").where(col("text").like("%a%"))])
    expected = judge.execute(
        "select translate(text, 'abc', 'ABC') as k, date_trunc('year', day)::date as y, "
        "count(*) filter (i > 0), min(upper(kind)), sum(x) filter (text like '%a%') "
        "from t group by all").fetchall()
    assert sorted(map(str, found.fetchall())) == sorted(
        str(tuple(Decimal(v).quantize(Decimal("0.001")) if isinstance(v, Decimal) else v
                  for v in row)) for row in expected)
