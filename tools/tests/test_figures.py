#!/usr/bin/env python3
"""Small figures of `flugs bench restart --figures`: what they say must be complete and consistent.

tools/tests/test_figures.py FLUGS FIGURE...

With "plots" among the figures they are drawn too, where matplotlib can be had; with "stubs" there
are runs with engines that give wrong answers, fail, or are not there.
"""

import json
import os
import subprocess
import sys
import tempfile

ROWS = 20000
RUNS = 2
SECONDS = 0.5
MEMORY_MB = 24
MEMORY_SUBSCRIBERS = 100_000
PEERS = ("lmdb", "rocksdb", "wiredtiger", "sqlite", "duckdb")
SPREADS = ("first_answer_ms", "exec_to_main_ms", "open_ms", "index_rebuild_ms", "rest_ms")
POINTS = {"7a": [(ROWS * step // 5, ROWS // 10) for step in range(1, 6)],
          "7b": [(ROWS // 10, ROWS // 10 * step // 5) for step in range(1, 6)],
          "table-1": [(ROWS, ROWS // 10)]}
TOOLS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
PLOT = os.path.join(TOOLS, "plot_restart.py")


def run(flugs, directory, figures, *options):
    """The exit status."""
    # Enough for flugs to have no room in memory.
    is_memory = figures == ["memory"]
    command = [flugs, "bench", "restart", "--figures", directory, "--only", ",".join(figures),
               "--rows", str(ROWS), "--runs", str(RUNS),
               "--subscribers", str(MEMORY_SUBSCRIBERS if is_memory else 1000),
               "--users", "2", "--seconds", str(SECONDS), *options]
    if is_memory:
        command += ["--peers", "none", "--memory", str(MEMORY_MB)]
    return subprocess.run(command, check=False).returncode


def name_of(figure):
    return figure if figure in ("table-1", "memory") else f"figure-{figure}"


def check_header(data, figure):
    assert data["figure"] == figure and data["answers_ok"] is True
    assert data["commit"] and data["command"] and data["machine"]["cpu"]
    assert data["paper"]["label"] == "SOFORT (paper, 8 cores, 200 ns)"


def is_built(flugs, peer):
    return os.path.exists(os.path.join(os.path.dirname(flugs), f"flugs-peer-{peer}"))


def check_index_place(engine):
    """The name is of what was run."""
    key = engine["key"]
    if key.startswith("flugs"):
        assert f"--index {key.split('-')[1]}" in engine["name"], (key, engine["name"])


def check_engines(data, flugs):
    """Every engine is there, or its program is not and that is said."""
    keys = [engine["key"] for engine in data["engines"]]
    assert keys[:3] == ["flugs-dram-no-key", "flugs-dram", "flugs-pool"]
    left_out = [entry["engine"] for entry in data["left_out"]]
    for peer in PEERS:
        assert (peer in keys) == is_built(flugs, peer), (peer, keys)
        assert (peer in left_out) == (not is_built(flugs, peer)), (peer, left_out)
    for engine in data["engines"]:
        check_index_place(engine)
        assert all(engine[key] for key in ("name", "setup", "medium", "guarantee",
                                            "first_query_kind")), engine


def check_point(engine, point):
    assert point["runs"] == RUNS == len(point["first_answer_ms_of_runs"])
    for name in SPREADS:
        spread = point[name]
        assert 0 <= spread["median"] <= spread["p90"] <= spread["max"], (name, spread)
    answer = point["first_answer_ms"]["max"]
    assert 0 < point["exec_to_main_ms"]["max"] < answer
    assert point["open_ms"]["max"] < answer
    # The life that made the database was killed under load; what it was promised was looked for.
    assert point["acknowledged_checked"]["max"] > 0, engine["key"]


def check_restarts(data, figure, flugs):
    check_header(data, figure)
    check_engines(data, flugs)
    assert data["stop"] == "kill" and data["runs"] == RUNS and data["threads"]["recovery"] > 0
    for engine in data["engines"]:
        sizes = [(point["rows"], point["distinct"]) for point in engine["points"]]
        assert sizes == POINTS[figure], (engine["key"], sizes)
        for point in engine["points"]:
            check_point(engine, point)


def check_recovery(data, figure, flugs):
    check_header(data, figure)
    peers = [peer for peer in PEERS if is_built(flugs, peer)]
    assert [curve["key"] for curve in data["curves"]] == ["flugs-dram", "flugs-pool", *peers]
    assert [entry["engine"] for entry in data["left_out"]] == \
        [peer for peer in PEERS if peer not in peers]
    media = {curve["medium"] for curve in data["curves"] if curve["key"] in peers}
    assert media <= {"file", "tmpfs"}, media
    for curve in data["curves"]:
        key = curve["key"]
        check_index_place(curve)
        assert curve["name"] and curve["guarantee"] and curve["users"] == 2, key
        assert curve["writers"] == (1 if key in ("lmdb", "sqlite") else 2), key
        assert curve["lost_acknowledged"] == 0 and curve["audit_ok"] is True, key
        assert set(curve["invariants"].values()) == {True}, (key, curve["invariants"])
        # On a busy machine a slow engine does next to nothing in so short a time.
        executed = curve["before_tps"] * SECONDS
        assert curve["audited_transactions"] > 0 or executed < 100, key
        assert curve["first_answer_ms"] is None or curve["first_answer_ms"] > 0, key
        times = [point["ms"] for point in curve["curve"]]
        assert times == sorted(times) and times[0] < 0 < times[-1], key


def can_limit_memory():
    """Whether the tool can make a control group that limits memory."""
    if os.access("/sys/fs/cgroup/memory", os.W_OK):
        return True
    try:
        with open("/sys/fs/cgroup/cgroup.subtree_control", encoding="ascii") as file:
            return "memory" in file.read().split() and os.access("/sys/fs/cgroup", os.W_OK)
    except OSError:
        return False


def check_memory(data):
    assert data["figure"] == "memory" and data["answers_ok"] is True
    assert [(run["key"], run["distribution"]) for run in data["runs"]] == \
        [("flugs-pool", "uniform"), ("flugs-pool", "nurand")]
    for entry in data["runs"]:
        assert entry["memory_bytes"] == MEMORY_MB << 20, entry
        assert entry["database_bytes"] > 3 / 2 * entry["memory_bytes"], entry
        assert entry["reads_per_second"] > 0 and entry["major_faults_per_read"] > 0, entry


def check_plots(directory, figures):
    if not any(name.endswith(".png") for name in os.listdir(directory)):
        print("no plots: matplotlib is not available")
        return
    for figure in figures:
        for ending in (".png", ".svg"):
            assert os.path.getsize(os.path.join(directory, name_of(figure) + ending)) > 10000


def check_stub_of_tatp(own, directory, failure, expected):
    """The same with TATP."""
    assert run(own, directory, ["8a"], "--plot", "none", "--peers", "sqlite") == expected
    with open(os.path.join(directory, "figure-8a.json"), encoding="utf-8") as file:
        data = json.load(file)
    assert data["answers_ok"] == (failure != 1)
    (failed,) = data["left_out"]
    assert failed["engine"] == "sqlite in figure 8a", failed
    assert f"ended with status {failure}" in failed["why"], failed
    assert [curve["key"] for curve in data["curves"]] == ["flugs-dram", "flugs-pool"]


def check_stubs(flugs, directory):
    """Beside a flugs of its own lies an engine that fails, and none in lmdb's place."""
    own = os.path.join(directory, "flugs")
    os.link(flugs, own)
    for failure, expected in ((1, 1), (2, 0)):  # a wrong answer; could not run
        stub = os.path.join(directory, "flugs-peer-sqlite")
        with open(stub, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nexit {failure}\n")
        os.chmod(stub, 0o755)
        status = run(own, directory, ["table-1"], "--plot", "none", "--peers", "lmdb,sqlite")
        assert status == expected, (failure, status)
        with open(os.path.join(directory, "table-1.json"), encoding="utf-8") as file:
            data = json.load(file)
        assert data["answers_ok"] == (failure != 1)
        missing, failed = data["left_out"]
        assert missing["engine"] == "lmdb" and "was not built" in missing["why"]
        assert failed["engine"].startswith("sqlite with"), failed
        assert f"ended with status {failure}" in failed["why"], failed
        last = data["engines"][-1]
        assert last["key"] == "sqlite" and not last["points"]
        check_stub_of_tatp(own, directory, failure, expected)


def main():
    flugs, *figures = sys.argv[1:]
    plots, stubs = "plots" in figures, "stubs" in figures
    figures = [figure for figure in figures if figure not in ("plots", "stubs")]
    if "memory" in figures and not can_limit_memory():
        print("skipped: this user can make no control group")
        return 77
    # In the build directory, which is on no tmpfs as a rule: Figure 8b has its pool there.
    with tempfile.TemporaryDirectory(dir=os.path.dirname(flugs)) as directory:
        assert run(flugs, directory, figures, "--plot", PLOT if plots else "none") == 0
        for figure in figures:
            with open(os.path.join(directory, name_of(figure) + ".json"), encoding="utf-8") as file:
                data = json.load(file)
            if figure in POINTS:
                check_restarts(data, figure, flugs)
            elif figure == "memory":
                check_memory(data)
            else:
                check_recovery(data, figure, flugs)
        if plots:
            check_plots(directory, figures)
        if stubs:
            check_stubs(flugs, directory)
        left = [name for name in os.listdir(directory) if name.startswith("figure-8b.") and
                not name.endswith((".json", ".png", ".svg"))]
        assert not left, left
    return 0


if __name__ == "__main__":
    sys.exit(main())
