"""The same queries over a live pool, on DuckDB's own tables and in Hyper: equal results, and
times."""

import threading
import time

import duckdb

from duckdb_bench.compare import difference, rounded
from duckdb_bench.figures import API, HYPER, LIVE, OWN, Times


def connect(threads):
    con = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": threads})
    con.execute(f"attach ':memory:' as {OWN}")
    return con


def copy_tables(con, transaction, tables):
    """DuckDB's own tables, with the types that the extension gives. The rows come by Arrow, another
    way than that of the queries over flugs."""
    for name in tables:
        columns = con.execute(f'describe {LIVE}."{name}"').fetchall()
        outputs = ", ".join(f'"{column}"::{kind} as "{column}"' for column, kind, *_ in columns)
        rows = transaction.query(name)  # DuckDB finds it by its name
        con.execute(f'create or replace table {OWN}."{name}" as select {outputs} from rows')
        del rows


def answer(con, side, sql):
    con.execute(f"use {side}")
    return con.execute(sql).fetchall()


def differences(con, side, queries):
    """What is not equal to the answers of DuckDB's own tables, in words."""
    found = []
    for query in queries:
        text = difference(answer(con, side, query.sql), answer(con, OWN, query.sql),
                          query.sorted_by)
        if text:
            found.append(f"{query.name} over flugs: {text}")
    return found


def api_differences(con, transaction, queries, api):
    """What flugs' own API answers otherwise than DuckDB's own tables, in words."""
    found = []
    for query in queries:
        if query.name not in api:
            continue
        text = difference(api[query.name](transaction).fetchall(), answer(con, OWN, query.sql),
                          query.sorted_by)
        if text:
            found.append(f"{query.name} by flugs' API: {text}")
    return found


def hyper_differences(con, hyper, queries):
    """What Hyper answers otherwise than DuckDB's own tables, in words."""
    found = []
    for query in queries:
        rows, scales = hyper.rows(query.sql)
        text = difference(rows, rounded(answer(con, OWN, query.sql), scales), query.sorted_by)
        if text:
            found.append(f"{query.name} in Hyper: {text}")
    return found


def measure(con, db, queries, api, hyper, runs):
    """Runs that alternate between the sides, after one that is not counted. `hyper` may be None."""
    figures = [Times(query) for query in queries]

    def ask(query, side):
        """The number of rows."""
        if side == API:
            with db.begin(read_only=True) as transaction:
                return len(api[query.name](transaction).fetchall())
        if side == HYPER:
            return hyper.count(query.sql)
        return len(con.execute(query.sql).fetchall())

    for run in range(runs + 1):
        for number, figure in enumerate(figures):
            sides = ([OWN, LIVE] + ([API] if figure.query.name in api else [])
                     + ([HYPER] if hyper else []))
            turn = (run + number) % len(sides)
            for side in sides[turn:] + sides[:turn]:
                if side in (LIVE, OWN):
                    con.execute(f"use {side}")
                begin = time.perf_counter()
                figure.rows = ask(figure.query, side)
                if run > 0:
                    figure.ms[side].append((time.perf_counter() - begin) * 1000)
    return figures


class Writers:
    """Threads that call `works`, so many times a second in all, while the block runs."""

    def __init__(self, works, per_second):
        self._works = works
        self._pause = len(works) / per_second if works else 0
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(work,)) for work in works]
        self._begun = 0.0
        self.errors = []
        self.seconds = 0.0

    def _write(self, work):
        due = time.perf_counter()
        try:
            while not self._ends.is_set():
                work()
                due = max(due + self._pause, time.perf_counter() - 1)
                wait = due - time.perf_counter()
                if wait > 0:
                    self._ends.wait(wait)
        except Exception as error:  # pylint: disable=broad-exception-caught
            self.errors.append(repr(error))

    def done(self):
        return sum(work.done for work in self._works)

    def __enter__(self):
        self._begun = time.perf_counter()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        for thread in self._threads:
            thread.join()
        self.seconds = time.perf_counter() - self._begun
