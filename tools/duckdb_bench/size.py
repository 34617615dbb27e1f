"""TPC-H: how long it takes until each table is in main, and its space, beside DuckDB's file."""

import json
import os
import subprocess
import tempfile
import time

import duckdb
import flugs

from duckdb_bench import tpch
from duckdb_bench.workloads import remove_pool


def _timed(work):
    """Seconds of `work`, and of the processor time of all threads meanwhile."""
    begin, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - begin, time.process_time() - cpu


def _fill(db, con, files):
    """The tables, one after the other: rows, and seconds to insert and to merge them."""
    tables = []
    for name in tpch.KEYS:
        load = _timed(lambda: tpch.load_table(db, con, name, files, "rows"))
        merge = _timed(lambda: db.merge(name))
        rows = len(db[name])
        tables.append({"name": name, "rows": rows,
                       "insert_s": load[0], "insert_cpu_s": load[1],
                       "merge_s": merge[0], "merge_cpu_s": merge[1],
                       "rows_per_s": rows / (load[0] + merge[0])})
    return tables


def _add_space(tables, tool, path):
    """What each table takes in the closed pool."""
    with tempfile.NamedTemporaryFile() as file:
        subprocess.run([tool, "pool", "info", path, "--json", file.name], check=True,
                       stdout=subprocess.DEVNULL)
        info = json.load(file)
    space = {table["name"]: table["space"] for table in info["tables"]}
    for table in tables:
        of_table = space[table["name"]]
        table["index_bytes"] = of_table["index_run_bytes"] + of_table["hint_index_bytes"]
        table["pool_bytes"] = of_table["pool_bytes"]
    return info


def _duckdb(files):
    """Bytes of DuckDB's file with the same rows, without keys; and the rows of each table there."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = os.path.join(folder, "tpch.db")
        with duckdb.connect(path) as con:
            rows = {}
            for name in tpch.KEYS:
                con.execute(f"create table {name} as from read_parquet('{files}/{name}.parquet')")
                rows[name] = con.execute(f"select count(*) from {name}").fetchone()[0]
            con.execute("checkpoint")
        return os.stat(path).st_blocks * 512, rows


def measure(tool, path, scale):
    """The figures. The pool is closed as a program leaves it, and not made smaller."""
    try:
        with tpch.parquet_files(scale) as files:
            with (flugs.open(path, exclusive=True, automatic_merges=False) as db,
                  duckdb.connect() as con):
                tables = _fill(db, con, files)
                guarantee = db.statistics()["guarantee"]
            info = _add_space(tables, tool, path)
            own, rows = _duckdb(files)
        indexes = sum(table["index_bytes"] for table in tables)
        medium = os.stat(path).st_blocks * 512
        return {"workload": "size", "title": f"TPC-H, scale {scale:g}: load and space",
                "medium": info["medium"], "guarantee": guarantee, "tables": tables,
                "used_bytes": info["pool_used_bytes"], "index_bytes": indexes,
                "medium_bytes": medium, "duckdb_bytes": own,
                "used_ratio": (info["pool_used_bytes"] - indexes) / own,
                "medium_ratio": (medium - indexes) / own, "medium_ratio_with_indexes": medium / own,
                "problems": [f"{one['name']}: {one['rows']} rows, DuckDB has {rows[one['name']]}"
                             for one in tables if one["rows"] != rows[one["name"]]]}
    finally:
        remove_pool(path)


def table(report):
    """The lines of a report."""
    mega = 1e6
    yield f"{report['title']}; pool: {report['guarantee']}"
    yield (f"{'table':10}{'rows':>10}{'insert s':>10}{'cpu s':>8}{'merge s':>9}{'cpu s':>8}"
           f"{'rows/s to main':>16}{'indexes MB':>12}{'all else MB':>13}")
    for one in report["tables"]:
        rest = one["pool_bytes"] - one["index_bytes"]
        yield (f"{one['name']:10}{one['rows']:10}{one['insert_s']:10.2f}{one['insert_cpu_s']:8.2f}"
               f"{one['merge_s']:9.2f}{one['merge_cpu_s']:8.2f}{one['rows_per_s']:16,.0f}"
               f"{one['index_bytes'] / mega:12.1f}{rest / mega:13.1f}")
    yield (f"in use {report['used_bytes'] / mega:.1f} MB, of these indexes"
           f" {report['index_bytes'] / mega:.1f}; on the medium {report['medium_bytes'] / mega:.1f}"
           f" MB; DuckDB's file {report['duckdb_bytes'] / mega:.1f} MB")
    yield (f"to DuckDB's file: in use without indexes {report['used_ratio']:.2f}, on the medium"
           f" without indexes {report['medium_ratio']:.2f}, with them"
           f" {report['medium_ratio_with_indexes']:.2f}")
