#!/usr/bin/env python3
"""The table of tools/disk-table, from canned results of flugs bench, and its runs of a program that
only writes some."""

import importlib.machinery
import importlib.util
import io
import json
import math
import os
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, TOOLS)
import disk_table
import disk_table_run


def load_tool():
    loader = importlib.machinery.SourceFileLoader("tool", os.path.join(TOOLS, "disk-table"))
    spec = importlib.util.spec_from_loader("tool", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


TOOL = load_tool()
MACHINE = {"cpu": "a processor", "cores": 2, "kernel": "Linux"}

# Writes what a run of TATP gives, or says why not.
STUB = """#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    --json) echo '{"executed_tps": 700, "medium": "file", "commit": "abc", "asked":' >"$2"
            echo '"'"$FLUGS_MEDIUM"'"}' >>"$2" ;;
    --users) [ "$2" != 2 ] || { echo 'flugs: too many users' >&2; exit 2; } ;;
  esac
  shift
done
"""


def curve(key, tps, answer=50.0, lost=0, **more):
    return {"key": key, "name": key.upper(), "before_tps": tps, "first_answer_ms": answer,
            "lost_acknowledged": lost, "audit_ok": True, "guarantee": "synced", "writers": 1,
            "medium": "file", **more}


def crash(*curves, left_out=()):
    return {"curves": list(curves), "left_out": list(left_out)}


def read(key, reads, distribution="uniform", memory=25):
    return {"database_bytes": 100, "memory_bytes": memory, "key": key, "name": key.upper(),
            "distribution": distribution, "medium": "file", "reads_per_second": reads}


def tatp(tps, late=0.0, writes=1.0, record_bytes=728):
    return {"executed_tps": tps, "durability": {"late_share": late}, "guarantee": "soon",
            "journal_per_write_txn": {"writes": writes, "record_bytes": record_bytes},
            "latency_ns": {"update_location": {"p999": 2.5e6}}}


def processor(user, system):
    return {"processor_ns_per_write_txn": {"user": user, "system": system}}


def runs(*results, status=0, why=""):
    return [{"run": number, "exit_status": status, "why": why, "result": result}
            for number, result in enumerate(results, 1)]


def results(**measurements):
    return disk_table.Results({name.replace("_", "-"): of for name, of in measurements.items()})


def data_of(measurements):
    sizes = {"quick": True, "device_writes": 200, "runs": 2, "subscribers": 1000, "seconds": 0.3,
             "sustained": 1.0, "memory_subscribers": 1000, "memory_users": 2}
    return {"command": "tools/disk-table --runs 2", "date": "2026-11-27", "commit": "abc",
            "medium": "ext4 on /dev/vda", "load": 0.1, "machine": MACHINE, "sizes": sizes,
            "measurements": measurements,
            "device": [{"when": "before", "median_us": 151.2},
                       {"when": "after", "median_us": 149}]}


class Bounds(unittest.TestCase):
    def test_goal_floor_or_neither_is_reached(self):
        more = disk_table.Bounds(1.7, 2, "x")
        less = disk_table.Bounds(60, 25, " ms", at_most=True)
        self.assertEqual([more.reached(value) for value in (2.1, 2, 1.8, 1.6)],
                         ["goal", "goal", "floor", "no"])
        self.assertEqual([less.reached(value) for value in (20, 60, 61, math.inf)],
                         ["goal", "floor", "no", "no"])
        self.assertEqual((more.text(1.7), less.text(60)), ("1.7x", "at most 60 ms"))

    def test_what_is_compared_is_what_is_printed(self):
        once = disk_table.Bounds(1, 1, "", at_most=True)
        self.assertEqual([once.reached(value) for value in (1.004, 1.006)], ["goal", "no"])

    def test_numbers_have_three_digits(self):
        self.assertEqual([disk_table.number(n) for n in (1.1534, 1, 59.84, 1052.3, 0)],
                         ["1.15", "1", "59.8", "1050", "0"])
        self.assertEqual([disk_table.per_second(n) for n in (834, 259312, 1.05e6)],
                         ["834/s", "259 k/s", "1050 k/s"])


class Rows(unittest.TestCase):
    def test_the_ratio_is_that_of_medians_to_the_best_rival(self):
        row = disk_table.tps_row(results(rivals_8=runs(
            crash(curve("flugs-dram", 999), curve("flugs-pool", 130), curve("lmdb", 10),
                  curve("rocksdb", 50)),
            crash(curve("flugs-pool", 100), curve("lmdb", 900), curve("rocksdb", 40)),
            crash(curve("flugs-pool", 900), curve("lmdb", 20), curve("rocksdb", 60)))), 8)
        self.assertEqual(row.cells()[1:], ("130/s (100/s to 900/s)",
                                           "ROCKSDB: 50/s (40/s to 60/s)", "2.6", "1.7x", "2x",
                                           "goal"))

    def test_a_rival_that_lost_transactions_is_not_compared_with(self):
        row = disk_table.tps_row(results(rivals_1=runs(
            crash(curve("flugs-pool", 110), curve("lmdb", 500, lost=3), curve("sqlite", 100)),
            status=1, why="status 1: WRONG")), 1)
        self.assertEqual((row.rival, row.reached()), ("SQLITE: 100/s", "floor"))

    def test_flugs_that_lost_transactions_reaches_nothing(self):
        lost = results(rivals_1=runs(crash(curve("flugs-pool", 900, lost=2), curve("lmdb", 1)),
                                     status=1, why="status 1: WRONG"))
        for row in (disk_table.tps_row(lost, 1), disk_table.answer_row(lost, 1)):
            self.assertEqual(row.reached(), "no: flugs lost 2 acknowledged transactions")

    def test_without_rivals_there_is_a_figure_and_no_ratio(self):
        row = disk_table.tps_row(results(rivals_1=runs(crash(curve("flugs-pool", 900)))), 1)
        self.assertEqual(row.cells()[1:4], ("900/s", "-", "-"))
        self.assertEqual(row.reached(), "not measured: there is no rival")

    def test_a_first_answer_that_never_came_is_the_slowest(self):
        def row(*answers):
            return disk_table.answer_row(results(rivals_16=runs(*(
                crash(curve("flugs-pool", 1, answer), curve("sqlite", 1, 4))
                for answer in answers))), 16)
        self.assertEqual(row(40, None, 50).cells()[1:4], (
            "50 ms (40 ms to no answer)", "SQLITE: 4 ms (4 ms to 4 ms)", "12.5"))
        self.assertEqual((row(None).flugs, row(None).reached()), ("no answer", "no"))

    def test_durable_soon_is_a_share_of_tmpfs(self):
        found = results(tatp_disk_soon_2=runs(tatp(1050, 0.44), tatp(1000, 0.4), tatp(1100, 0.5)),
                        tatp_tmpfs_soon_2=runs(tatp(1790)))
        row = disk_table.soon_row(found, "soon", "tatp-disk-soon-2", 2, disk_table.SOON_BOUNDS)
        self.assertEqual(row.cells()[1:], ("1050/s (1000/s to 1100/s), 44 % later than 10 ms",
                                           "flugs on tmpfs: 1790/s", "58.7 %", "60 %", "90 %",
                                           "no"))

    def test_a_failed_run_is_left_to_the_others_or_gives_the_reason(self):
        failed = runs(None, status=2, why="status 2: no space")
        found = results(tatp_disk_1=failed + runs(tatp(1, record_bytes=600)))
        row = disk_table.journal_row(found, "bytes", "record_bytes", disk_table.BYTES_BOUNDS)
        self.assertEqual((row.flugs, row.reached()), ("600", "floor"))
        row = disk_table.journal_row(results(tatp_disk_1=failed), "bytes", "record_bytes",
                                     disk_table.BYTES_BOUNDS)
        self.assertEqual((row.flugs, row.reached()), ("-", "not measured: status 2: no space"))

    def test_a_broken_invariant_is_no_figure(self):
        broken = runs(tatp(900), status=1, why="status 1: T3 is broken")
        row = disk_table.journal_row(results(tatp_disk_1=broken), "writes", "writes",
                                     disk_table.WRITES_BOUNDS)
        self.assertIn("T3 is broken", row.reached())

    def test_reads_with_less_memory_are_judged_beside_lmdb(self):
        found = results(memory=runs({"left_out": [], "runs": [
            read("flugs-pool", 60), read("lmdb", 100), read("rocksdb", 300),
            read("flugs-pool", 1, "nurand"), read("lmdb", 2, "nurand")]}))
        self.assertEqual(disk_table.memory_row(found, "uniform").cells()[1:4],
                         ("60/s", "LMDB: 100/s; ROCKSDB: 300/s", "0.6"))
        self.assertEqual(disk_table.memory_row(found, "nurand").reached(), "floor")

    def test_a_database_that_fits_into_memory_says_nothing(self):
        found = results(memory=runs({"left_out": [], "runs": [
            read("flugs-pool", 60, memory=200), read("lmdb", 100)]}))
        row = disk_table.memory_row(found, "uniform")
        self.assertEqual((row.flugs, row.ratio), ("60/s", "0.6"))
        self.assertEqual(row.reached(), "not measured: the database was 0.5 times the memory")

    def test_without_lmdb_the_reason_is_said(self):
        found = results(memory=runs({
            "left_out": [{"engine": "lmdb in figure memory", "why": "it ended with status 2"}],
            "runs": [read("flugs-pool", 60), read("rocksdb", 300)]}))
        row = disk_table.memory_row(found, "uniform")
        self.assertEqual(row.rival, "ROCKSDB: 300/s")
        self.assertEqual(row.reached(),
                         "not measured: LMDB was left out: it ended with status 2")

    def test_what_nothing_measures_stays_with_the_reason(self):
        rows = disk_table.rows_of(results())
        self.assertTrue(all(row.reached().startswith("not measured: ") for row in rows))
        row = disk_table.checkpoint_row(results(tatp_disk_1=runs(tatp(1))))
        self.assertEqual(row.flugs, "2.5 ms")
        self.assertIn("not measured", row.reached())

    def test_checkpoints_are_judged_beside_a_run_without(self):
        found = results(tatp_disk_1=runs(tatp(1)), tatp_no_checkpoint=runs(tatp(1)))
        self.assertEqual(disk_table.checkpoint_row(found).cells()[1:4],
                         ("2.5 ms", "flugs without: 2.5 ms", "1"))
        self.assertEqual(disk_table.checkpoint_row(found).reached(), "goal")

    def test_processor_time_of_the_journal_is_what_it_takes_more(self):
        found = results(journal_cpu=runs(processor(1400, 100), processor(1500, 120)),
                        journal_cpu_tmpfs=runs(processor(1000, 0)))
        row = disk_table.processor_row(found)
        self.assertEqual(row.cells()[1:], (
            "1560 ns (1500 ns to 1620 ns), of it 110 ns in the kernel",
            "flugs without: 1000 ns, of it 0 ns in the kernel", "560 ns more", "at most 600 ns",
            "at most 300 ns", "floor"))
        row = disk_table.processor_row(results(journal_cpu_tmpfs=runs(processor(1000, 0))))
        self.assertEqual(row.reached(), "not measured: was not run")


class Table(unittest.TestCase):
    def test_it_has_all_rows_and_the_conditions(self):
        text = disk_table.markdown(data_of({
            "rivals-1": runs(crash(curve("flugs-pool", 110), curve("lmdb", 100),
                                   left_out=[{"engine": "duckdb", "why": "was not built"}])),
            "memory": runs(None, status=2, why="status 2: be root")}))
        table = [line for line in text.splitlines() if line.startswith("|")]
        self.assertEqual({line.count("|") for line in table}, {8})
        self.assertEqual(len(table), 2 + len(disk_table.rows_of(results())))
        for words in ("`tools/disk-table --runs 2`", "commit abc", "ext4 on /dev/vda",
                      "151 us before, 149 us after",
                      "1000 subscribers, 0.3 s a run", "2 runs of each figure", "a quick run",
                      "LMDB: synced;", "duckdb is left out: was not built",
                      "memory, run 1: status 2: be root"):
            self.assertIn(words, text)

    def test_a_device_without_direct_writes_is_said(self):
        self.assertEqual(disk_table.device_text([{"when": "before", "why": "Invalid argument"}]),
                         "not measured: Invalid argument")

    def test_only_status_1_is_a_failed_check(self):
        self.assertFalse(disk_table.is_wrong(data_of({"memory": runs(None, status=2)})))
        self.assertTrue(disk_table.is_wrong(data_of({"memory": runs({}, status=1)})))


class Runs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.flugs = os.path.join(folder.name, "tools", "flugs")
        os.mkdir(os.path.dirname(self.flugs))
        with open(self.flugs, "w", encoding="utf-8") as file:
            file.write(STUB)
        os.chmod(self.flugs, 0o755)

    def run_tool(self, *arguments):
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as errors:
            status = TOOL.main([*arguments])
        return status, out.getvalue(), errors.getvalue()

    def plan(self, *arguments):
        options = TOOL.parse_arguments([*arguments])
        return {measurement.name: measurement for measurement in
                disk_table_run.measurements(options)}

    def test_every_row_has_its_measurement(self):
        names = [*(f"rivals-{users}" for users in disk_table.USERS), "tatp-disk-soon-1",
                 "tatp-disk-soon-2", "tatp-tmpfs-soon-1", "tatp-tmpfs-soon-2", "tatp-disk-1",
                 "tatp-no-checkpoint", "tatp-disk-sustained", "memory", "journal-cpu",
                 "journal-cpu-tmpfs"]
        self.assertCountEqual(self.plan(), names)

    def test_commands_have_the_sizes_that_were_asked_for(self):
        plan = self.plan("--quick", "--sustained", "7", "--tmpfs", "/memory")
        sustained = plan["tatp-disk-sustained"].arguments("/disk")
        self.assertEqual(sustained[:4], ["bench", "tatp", "--pool", "/disk/pool"])
        for words in (["--seconds", "7.0"], ["--subscribers", "1000"], ["--durable-within", "10"]):
            self.assertEqual(sustained[sustained.index(words[0]) + 1], words[1])
        for name in ("tatp-tmpfs-soon-1", "journal-cpu"):
            self.assertIn("/memory/pool", plan[name].arguments("/disk"))
        self.assertNotIn("--durable-within", plan["tatp-disk-1"].arguments("/disk"))

    def test_a_run_has_its_result_or_the_reason(self):
        runner = disk_table_run.Runner(self.flugs, self.folder)
        plan = self.plan("--quick", "--memory-users", "3")
        with redirect_stderr(io.StringIO()):
            good = runner.run(plan["tatp-disk-1"], 1)
            bad = runner.run(plan["tatp-disk-soon-2"], 1)
            silent = runner.run(plan["memory"], 1)
            journal = runner.run(plan["journal-cpu"], 1)
        self.assertEqual((good["why"], good["result"]["executed_tps"]), ("", 700))
        self.assertEqual((good["result"]["asked"], journal["result"]["asked"]), ("", "file"))
        self.assertEqual((bad["why"], bad["result"]), ("status 2: too many users", None))
        self.assertEqual(silent["why"], "it wrote no result")

    def test_a_result_of_another_medium_is_none_of_a_disk(self):
        self.assertEqual(disk_table_run.wrong_medium({"curves": [
            {"key": "flugs-pool", "medium": "tmpfs"}, {"key": "lmdb", "medium": "tmpfs"}]}),
            "the medium was tmpfs, not file")
        self.assertEqual(disk_table_run.wrong_medium({"medium": "file"}), "")

    def test_a_folder_in_memory_is_refused(self):
        self.assertRaisesRegex(ValueError, "no disk", TOOL.medium_of, "/dev")

    def test_samples_of_curves_are_left_out_of_the_json(self):
        self.assertEqual(disk_table_run.without_samples(
            {"curves": [{"key": "lmdb", "curve": [{"ms": 1, "tps": 2}]}]}),
            {"curves": [{"key": "lmdb"}]})

    def test_an_earlier_run_is_printed_again(self):
        path = os.path.join(self.folder, "disk.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(data_of({"tatp-disk-1": runs(tatp(1, record_bytes=540))}), file)
        status, out, _ = self.run_tool("--from", path)
        self.assertEqual(status, TOOL.EXIT_OK)
        self.assertIn("| 540 | - | - | at most 750 | at most 550 | goal |", out)
        self.assertEqual(self.run_tool("--from", path + "x")[0], TOOL.EXIT_COULD_NOT_RUN)


if __name__ == "__main__":
    unittest.main()
