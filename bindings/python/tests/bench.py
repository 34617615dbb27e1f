"""Figures of the Python module, in processor time unless their name says elapsed: the median of
several runs.

bench.py [--rows N] [--pool PATH] [--json FILE]
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

import flugs
from flugs import col

RUNS = 5
FIGURES = {}


def report(name, figure, unit):
    FIGURES[name] = {"figure": figure, "unit": unit}
    print(f"{name:52} {figure:8.2f} {unit}")


def processor_ns(work, calls, clock=time.process_time_ns):
    """Processor time of one call, the median of the runs."""
    figures = []
    for _ in range(RUNS):
        begin = clock()
        work(calls)
        figures.append((clock() - begin) / calls)
    return statistics.median(figures)


def elapsed_ns(work, calls):
    """The same, of work that several threads share."""
    return processor_ns(work, calls, time.perf_counter_ns)


def rows_of_keys(db, rows):
    table = db.create_table(
        "keyed", {"id": flugs.int64, "a": flugs.int64, "s": flugs.string, "f": flugs.double},
        primary_key="id")
    numbers = iter(range(10**12))

    def fill(calls):
        with db.begin() as t:
            t.insert_rows("keyed", ((k, k, "a text", 0.5)
                                    for k in (next(numbers) for _ in range(calls))))

    report("insert_rows, tuples of 4 columns, a row", processor_ns(fill, rows) / 1000, "us")

    def insert(calls):
        for _ in range(calls):
            with db.begin() as t:
                t.insert("keyed", (next(numbers), 1, "a text", 0.5))

    def insert_alone(calls):
        insert_row = table.insert
        for _ in range(calls):
            insert_row((next(numbers), 1, "a text", 0.5))

    report("with db.begin() as t: t.insert", processor_ns(insert, 50_000) / 1000, "us")
    report("table.insert, which commits", processor_ns(insert_alone, 50_000) / 1000, "us")
    transaction = db.begin(read_only=True)

    def loop(calls):
        for _ in range(calls):
            pass

    def find(calls):
        get = transaction.get
        for k in range(calls):
            get("keyed", k)

    empty = processor_ns(loop, 200_000)
    report("t.get of 4 columns", (processor_ns(find, 200_000) - empty) / 1000, "us")

    def find_alone(calls):
        get = table.get
        for k in range(calls):
            get(k)

    keys = list(range(1000))

    def find_many(calls):
        for _ in range(calls // len(keys)):
            transaction.get_many("keyed", keys)

    report("t.get_many of 1,000 keys, a row of 4 columns", processor_ns(find_many, 200_000) / 1000,
           "us")

    def find_alone(calls):
        get = table.get
        for k in range(calls):
            get(k)

    report("table.get", (processor_ns(find_alone, 200_000) - empty) / 1000, "us")
    transaction.abort()


def columns_to_arrow(db, rows):
    import pyarrow
    table = db.create_table("wide", {"a": flugs.int64, "b": flugs.int64, "s": flugs.string})
    with db.begin() as t:
        t.insert_rows("wide", ((k, k % 1000, f"text {k % 1000}") for k in range(rows)))
    db.merge("wide")
    numbers = table.query().select("a", "b")
    texts = table.query().select("s")
    for name, query in (("two int columns", numbers), ("a text column", texts)):
        def read(_, query=query):
            assert pyarrow.table(query).num_rows == rows
        report(f"{name} into pyarrow, a row, elapsed", elapsed_ns(read, 1) / rows, "ns")


def arrow_in(db, rows):
    import pyarrow
    rows = min(rows, 1_000_000)
    table = pyarrow.table({"id": range(rows), "a": [k % 1000 for k in range(rows)],
                           "s": ["a text"] * rows, "f": [0.5] * rows})
    figures = []
    for number in range(RUNS):
        to = db.create_table(f"in_{number}", {"id": flugs.int64, "a": flugs.int64,
                                              "s": flugs.string, "f": flugs.double},
                             primary_key="id")
        begin = time.perf_counter_ns()
        assert to.insert_rows(table) == rows
        figures.append((time.perf_counter_ns() - begin) / rows)
    report("insert_rows, Arrow of 4 columns, a row, elapsed",
           statistics.median(figures) / 1000, "us")


def two_threads(db):
    """How much more two threads do than one in the same time, each with its own transactions."""
    def queries(seconds, counts, number):
        table = db["wide"]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with db.begin(read_only=True) as t:
                t.query("wide").where(col("a") % 7 == 3).group_by(
                    agg=flugs.sum("b")).run(threads=1).fetchall()
            counts[number] += 1
        assert table

    def points(seconds, counts, number):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with db.begin() as t:
                for k in range(100):
                    t.get("keyed", k * 7)
            counts[number] += 1

    def points_at_once(seconds, counts, number):
        keys = [k * 7 for k in range(1000)]
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with db.begin() as t:
                t.get_many("keyed", keys)
            counts[number] += 1

    for name, work in (("queries", queries), ("look-ups", points),
                       ("look-ups by get_many", points_at_once)):
        ratios = []
        for _ in range(RUNS):
            rates = []
            for threads in (1, 2):
                counts = [0] * threads
                running = [threading.Thread(target=work, args=(0.5, counts, n))
                           for n in range(threads)]
                for thread in running:
                    thread.start()
                for thread in running:
                    thread.join()
                rates.append(sum(counts))
            ratios.append(rates[1] / rates[0])
        report(f"two threads on two transactions, {name}", statistics.median(ratios), "times one")


def write_json(file, arguments, python, guarantee):
    """What was measured, and where."""
    here = os.path.dirname(os.path.realpath(__file__))
    commit = subprocess.run(["git", "-C", here, "rev-parse", "HEAD"], capture_output=True,
                            text=True, check=False).stdout.strip()
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"commit": commit, "python": python, "machine": platform.machine(),
                   "processors": os.cpu_count(), "guarantee": guarantee, "rows": arguments.rows,
                   "runs": RUNS, "figures": FIGURES}, out, indent=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000, help="of the wide table")
    parser.add_argument("--pool")
    parser.add_argument("--json", metavar="FILE", help="write the figures to this file")
    arguments = parser.parse_args()
    folder = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
    path = arguments.pool or os.path.join(folder, f"flugs_python_bench_{os.getpid()}.pool")
    free = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    python = f"{sys.version.split()[0]}{', free-threaded' if free else ''}"
    print(f"Python {python}; processor time but where elapsed, medians of {RUNS}")
    try:
        with flugs.open(path, exclusive=True, max_bytes=8 << 30) as db:
            rows_of_keys(db, min(arguments.rows, 200_000))
            columns_to_arrow(db, arguments.rows)
            arrow_in(db, arguments.rows)
            two_threads(db)
            guarantee = db.statistics()["guarantee"]
    finally:
        if os.path.exists(path):
            os.remove(path)
    if arguments.json:
        write_json(arguments.json, arguments, python, guarantee)


if __name__ == "__main__":
    main()
