"""One table of six columns, and seven queries on it: what is filtered, and what is handed over."""

import random

import duckdb
import flugs

from duckdb_bench.queries import Query

NAMES = 1000
ROWS_AT_ONCE = 500_000
# `part` gives numbers of a row that look random, and are the same each time.
MADE = f"""
create macro part(i, n, values) as hash(i * 8 + n) % values;
create view made as
select i as id, 'customer number ' || part(i, 1, {NAMES}) as name, part(i, 2, 1000)::int as pieces,
       date '2020-01-01' + part(i, 3, 1000)::int as day,
       (part(i, 4, 1000000)::decimal(18,2) / 100)::decimal(18,2) as euros,
       part(i, 5, 1000000) / 1e6 as weight
from range({{rows}}) as numbers(i)
"""


def load(db, rows, layout):
    table = db.create_table(
        "sales", {"id": flugs.int64.not_null(), "name": flugs.string.not_null(),
                  "pieces": flugs.int32.not_null(), "day": flugs.date.not_null(),
                  "euros": flugs.decimal(2).not_null(), "weight": flugs.double.not_null()},
        primary_key="id", layout=layout)
    with duckdb.connect() as con:
        con.execute(MADE.format(rows=rows))
        for batch in con.sql("from made").to_arrow_reader(ROWS_AT_ONCE):
            table.insert_rows(batch)


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
