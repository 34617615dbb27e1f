"""TPC-H: its data, made by tpchgen-cli, in a pool; and its refreshes as transactions."""

import contextlib
import datetime
import os
import random
import subprocess
import tempfile
from decimal import Decimal

import duckdb
import flugs

from duckdb_bench.queries import read_queries

KEYS = {"region": "r_regionkey", "nation": "n_nationkey", "supplier": "s_suppkey",
        "part": "p_partkey", "partsupp": ("ps_partkey", "ps_suppkey"), "customer": "c_custkey",
        "orders": "o_orderkey", "lineitem": ("l_orderkey", "l_linenumber")}
TYPES = {"BIGINT": flugs.int64, "INTEGER": flugs.int32, "VARCHAR": flugs.string,
         "DATE": flugs.date, "DECIMAL(15,2)": flugs.decimal(2)}
ROWS_AT_ONCE = 500_000
# Above all keys that a scale up to 100 has.
FIRST_NEW_ORDER = 1 << 40
MODES = ("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB")


def generator():
    """The program that makes the data: beside this Python, as its package has it."""
    import sysconfig  # pylint: disable=import-outside-toplevel
    return os.path.join(sysconfig.get_path("scripts"), "tpchgen-cli")


@contextlib.contextmanager
def parquet_files(scale):
    """A folder with a file for each table."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([generator(), "parquet", "--scale-factor", str(scale), "--quiet",
                        "--output-dir", folder], check=True)
        yield folder


def load_table(db, con, name, folder, layout):
    """Makes a table and fills it from its file. All rows are in the delta then, in this layout."""
    source = con.from_parquet(os.path.join(folder, f"{name}.parquet"))
    columns = {column: TYPES[str(kind)].not_null()
               for column, kind in zip(source.columns, source.types)}
    table = db.create_table(name, columns, primary_key=KEYS[name], layout=layout)
    for batch in source.to_arrow_reader(ROWS_AT_ONCE):
        table.insert_rows(batch)


def load(db, scale, layout):
    """The eight tables."""
    with parquet_files(scale) as folder, duckdb.connect() as con:
        for name in KEYS:
            load_table(db, con, name, folder, layout)


def fraction(scale):
    """The parameter of Q11."""
    return f"{0.0001 / scale:.10f}"


def queries(scale):
    return read_queries("tpch.sql", fraction=fraction(scale))


class Refresh:
    """The specification's refreshes, an order at a time: a new order comes in with one to seven
    lines; and once there are `kept` of them, the oldest is deleted with its lines."""

    def __init__(self, db, seed, kept=100):
        self._db = db
        self._random = random.Random(seed)
        self._kept = kept
        self._next = FIRST_NEW_ORDER + seed * (1 << 32)
        self._orders = []
        self.done = 0
        self._customers, self._parts, self._suppliers = (
            len(db[name]) for name in ("customer", "part", "supplier"))

    def __call__(self):
        if len(self._orders) < self._kept:
            self._db.run(self._enter)
            self._orders.append((self._next, self._lines))
            self._next += 1
        else:
            self._db.run(self._delete)
            del self._orders[0]
        self.done += 1

    def _enter(self, t):
        draw = self._random
        self._lines = draw.randint(1, 7)
        day = datetime.date(1992, 1, 1) + datetime.timedelta(days=draw.randrange(2405))
        t.insert("orders", (self._next, draw.randint(1, self._customers), "O",
                            Decimal(draw.randrange(10**7)) / 100, day, "1-URGENT",
                            "Clerk#000000001", 0, "a new order"))
        for line in range(1, self._lines + 1):
            shipped = day + datetime.timedelta(days=draw.randint(1, 121))
            received = shipped + datetime.timedelta(days=draw.randint(1, 30))
            t.insert("lineitem", (
                self._next, draw.randint(1, self._parts), draw.randint(1, self._suppliers), line,
                Decimal(draw.randint(1, 50)), Decimal(draw.randrange(90_000, 10**7)) / 100,
                Decimal(draw.randint(0, 10)) / 100, Decimal(draw.randint(0, 8)) / 100, "N", "O",
                shipped, day + datetime.timedelta(days=draw.randint(30, 90)), received,
                "NONE", draw.choice(MODES), "a new line"))

    def _delete(self, t):
        order, lines = self._orders[0]
        t.delete("orders", order)
        for line in range(1, lines + 1):
            t.delete("lineitem", (order, line))
