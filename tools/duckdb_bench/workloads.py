"""The workloads: what fills a pool, what is asked, what is written meanwhile."""

import os
from dataclasses import dataclass, field
from typing import Any, Callable

import flugs

from duckdb_bench import ch, rows, tpch, tpch_api


@dataclass(frozen=True)
class Workload:
    name: str
    title: str
    make: Callable[[str], None]  # fills a new pool at this path
    queries: list
    # Of a database and a seed: a callable that writes once, and counts in `done`.
    writer: Callable[[Any, int], Any]
    invariants: tuple = ()  # name and two statements of SQL with equal answers
    share_of_writes: float = 1.0  # of what --writes says
    # Name -> the same query by flugs' own API, of a transaction.
    api: dict = field(default_factory=dict)
    # Table -> the columns of its key, of a workload that runs in Hyper as well.
    keys: dict = field(default_factory=dict)


def _filled(load, size, delta):
    """`delta`: the layout of rows that stay in the delta; None: they are merged later."""
    def make(path):
        with flugs.open(path, exclusive=True, automatic_merges=not delta) as db:
            load(db, size, delta or "rows")
    return make


def _place(delta):
    return f", in the delta, layout {delta}" if delta else ""


def of_rows(count, delta=None):
    return Workload("rows", f"seven queries, {count:,} rows{_place(delta)}",
                    _filled(rows.load, count, delta), rows.queries(count), rows.Updates)


def of_tpch(scale, delta=None):
    return Workload("tpch", f"TPC-H, scale {scale:g}{_place(delta)}",
                    _filled(tpch.load, scale, delta),
                    tpch.queries(scale), tpch.Refresh,
                    api=tpch_api.queries(tpch.fraction(scale)), keys=tpch.KEYS)


def of_ch(tool, warehouses, customers, items):
    invariants = tuple((name, a.replace("{loaded}", str(customers)),
                        b.replace("{loaded}", str(customers))) for name, a, b in ch.INVARIANTS)
    return Workload("ch", f"CH-benCHmark, {warehouses} warehouses",
                    lambda path: ch.make_pool(tool, path, warehouses, customers, items),
                    ch.queries(), ch.Terminal, invariants, share_of_writes=0.1)


def remove_pool(path):
    for name in (path, path + ".journal"):
        if os.path.exists(name):
            os.remove(name)
