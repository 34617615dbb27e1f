"""A run of a workload: pool, copies, queries on all sides, transactions meanwhile."""

import contextlib
import sys
import time

import flugs

from duckdb_bench import figures, measure
from duckdb_bench.figures import HELD, LIVE, OWN
from duckdb_bench.hyper import CannotRun, Hyper
from duckdb_bench.workloads import remove_pool

WRITERS = 2


def merge_all(db):
    for name in db.tables():
        db.merge(name)


def broken_invariants(con, workload):
    """Pairs of figures that differ, each pair asked in one query on the live pool."""
    con.execute(f"use {LIVE}")
    found = []
    for name, a, b in workload.invariants:
        (left, right), = con.execute(f"select ({a}), ({b})").fetchall()
        if left != right:
            found.append(f"{name}: {left} and {right}")
    return found


class Run:
    def __init__(self, workload, path, options):
        self._workload = workload
        self._path = path
        self._options = options
        self.problems = []
        self.invariants_held = 0
        self._hyper = None
        self._no_hyper = ""  # why

    def __call__(self):
        begin = time.perf_counter()
        try:
            self._workload.make(self._path)
            with flugs.open(self._path, automatic_merges=not self._options.delta) as db:
                if not self._options.delta:
                    merge_all(db)
                self._load_seconds = time.perf_counter() - begin
                with (contextlib.closing(measure.connect(self._options.threads)) as con,
                      self._start_hyper()):
                    return self._work(db, con)
        finally:
            remove_pool(self._path)

    def _start_hyper(self):
        """A context that ends it. Without it the run goes on."""
        if self._workload.keys:
            try:
                self._hyper = Hyper(self._path + ".hyper", self._options.threads)
                return self._hyper
            except CannotRun as error:
                self._go_on_without_hyper(error)
        return contextlib.nullcontext()

    def _go_on_without_hyper(self, why):
        self._hyper = None
        self._no_hyper = str(why)
        print(f"bench-duckdb: without Hyper: {why}", file=sys.stderr)

    def _fill_hyper(self, con):
        try:
            self._hyper.load(con, OWN, self._workload.keys)
        except CannotRun as error:
            self._go_on_without_hyper(error)
        else:
            self.problems += measure.hyper_differences(con, self._hyper, self._workload.queries)

    def _work(self, db, con):
        db.to_duckdb(con, name=LIVE)
        queries = self._workload.queries
        per_second = self._options.writes * self._workload.share_of_writes
        works = [self._workload.writer(db, seed) for seed in range(1, 1 + WRITERS)]
        writers = measure.Writers(works if per_second else [], per_second)
        with writers:
            # What the views of a transaction show is still so when all queries have run.
            with db.begin(read_only=True) as held:
                held.to_duckdb(con, name=HELD)
                measure.copy_tables(con, held, db.tables())
                self.problems += measure.differences(con, HELD, queries)
                self.problems += measure.differences(con, HELD, queries)
                self.problems += measure.api_differences(con, held, queries, self._workload.api)
            if self._hyper:
                self._fill_hyper(con)
            self.problems += self._look(con)
            times = measure.measure(con, db, queries, self._workload.api, self._hyper,
                                    self._options.runs)
            self.problems += self._look(con)
        self.problems += [f"a writer failed: {error}" for error in writers.errors]
        if not per_second:
            self.problems += measure.differences(con, LIVE, queries)
        db.check()
        return self._report(db, times, writers)

    def _look(self, con):
        broken = broken_invariants(con, self._workload)
        self.invariants_held += len(self._workload.invariants) - len(broken)
        return broken

    def _report(self, db, times, writers):
        statistics = db.statistics()
        return {
            "workload": self._workload.name, "title": self._workload.title,
            "medium": statistics["medium"], "guarantee": statistics["guarantee"],
            "load_seconds": self._load_seconds,
            "rows": {name: len(db[name]) for name in db.tables()},
            **figures.summary(times),
            "hyper": self._hyper.version if self._hyper else None, "no_hyper": self._no_hyper,
            "transactions": writers.done() if writers.seconds else 0,
            "transactions_per_second":
                writers.done() / writers.seconds if self._options.writes else 0,
            "invariants_held": self.invariants_held, "problems": self.problems,
        }
