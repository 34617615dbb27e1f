"""One table of six columns, and seven queries on it: what is filtered, and what is handed over."""

import datetime
import random

import flugs
import pyarrow

from duckdb_bench.queries import Query

NAMES = 1000
ROWS_AT_ONCE = 500_000


def load(db, rows, seed=1):
    draw = random.Random(seed)
    table = db.create_table(
        "sales", {"id": flugs.int64.not_null(), "name": flugs.string.not_null(),
                  "pieces": flugs.int32.not_null(), "day": flugs.date.not_null(),
                  "euros": flugs.decimal(2).not_null(), "weight": flugs.double.not_null()},
        primary_key="id")
    names = [f"customer number {k}" for k in range(NAMES)]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(days=k) for k in range(1000)]
    for first in range(0, rows, ROWS_AT_ONCE):
        count = min(ROWS_AT_ONCE, rows - first)
        table.insert_rows(pyarrow.table({
            "id": pyarrow.array(range(first, first + count), pyarrow.int64()),
            "name": draw.choices(names, k=count),
            "pieces": pyarrow.array(draw.choices(range(1000), k=count), pyarrow.int32()),
            "day": draw.choices(days, k=count),
            "euros": pyarrow.array(draw.choices(range(10**6), k=count), pyarrow.int64()).cast(
                pyarrow.decimal128(18, 0)).cast(pyarrow.decimal128(20, 2)).cast(
                pyarrow.decimal128(18, 2)),
            "weight": [draw.random() for _ in range(count)]}))


def queries(rows):
    asked = (
        ("name", "one of 1000 names, count and sum",
         f"select count(*), sum(euros) from sales where name = 'customer number {NAMES // 2}'"),
        ("two", "0.5 % by two columns, count and sum",
         "select count(*), sum(euros) from sales where pieces < 50 and day < date '2020-04-10'"),
        ("filter", "5 %, count and sum",
         "select count(*), sum(euros) from sales where pieces < 50"),
        ("sum", "two sums, unfiltered", "select sum(euros), sum(pieces) from sales"),
        ("six", "six columns, unfiltered",
         "select sum(id), min(name), sum(pieces), max(day), sum(euros), sum(weight) from sales"),
        ("group", "sums by name of half the rows",
         "select name, sum(euros) from sales where pieces < 500 group by name"),
        ("point", "a row by its key", f"select * from sales where id = {rows // 2}"),
    )
    return [Query(name, question, (), sql) for name, question, sql in asked]


class Updates:
    """Changes a row by its key."""

    def __init__(self, db, seed):
        self._table = db["sales"]
        self._random = random.Random(seed)
        self._rows = len(self._table)
        self.done = 0

    def __call__(self):
        self._table.update(self._random.randrange(self._rows),
                           {"pieces": self._random.randrange(1000)})
        self.done += 1
