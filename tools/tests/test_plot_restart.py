#!/usr/bin/env python3
"""What tools/plot_restart.py computes before it draws."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
import plot_restart

PAPER = {"distinct": 10_000_000, "hash_map": {"index_rebuild_ms": 1848, "rest_ms": 74}}
MACHINE = {"cpu": "a processor", "cores": 2, "kernel": "Linux"}


def spread(value):
    return {"median": value, "p90": value, "max": value}


class PlotRestart(unittest.TestCase):
    def test_numbers_are_short(self):
        self.assertEqual([plot_restart.count(n) for n in (7, 2500, 10_000_000, 2e9)],
                         ["7", "2.5 k", "10 M", "2 G"])
        self.assertEqual([plot_restart.milliseconds(n) for n in (4.26, 1922.4)],
                         ["4.3 ms", "1922 ms"])

    def test_sizes_are_spaced_from_end_to_end(self):
        sizes = plot_restart.spaced(10, 1000, 2)
        for size, expected in zip(sizes, (10, 100, 1000), strict=True):
            self.assertAlmostEqual(size, expected)

    def test_the_papers_line_is_linear_and_goes_through_its_table(self):
        self.assertEqual(plot_restart.paper_ms(PAPER, "hash_map", 10_000_000), 1922)
        self.assertEqual(plot_restart.paper_ms(PAPER, "hash_map", 5_000_000), 924 + 74)

    def test_a_curve_is_averaged_by_time_and_not_by_samples(self):
        curve = [{"ms": ms, "tps": tps}
                 for ms, tps in ((-100, 0), (-90, 100), (-10, 200), (10, 1000), (30, 0))]
        self.assertEqual(plot_restart.averaged(curve, 100),
                         [(-0.05, (10 * 100 + 80 * 200) / 90), (0.05, 500.0)])

    def test_the_close_look_reaches_twice_as_far_as_full_speed(self):
        slow = {"first_answer_ms": 20, "full_speed_ms": 900}
        never = {"first_answer_ms": 300, "full_speed_ms": None}
        self.assertEqual(plot_restart.near_ms([slow, never]), 1800)
        self.assertEqual(plot_restart.near_ms([never]), 600)
        self.assertEqual(plot_restart.near_ms([{"first_answer_ms": 9, "full_speed_ms": 60}]), 400)

    def test_the_close_look_averages_what_full_speed_is_looked_for_in(self):
        self.assertEqual([plot_restart.near_width_ms({"full_speed_window_ms": ms})
                          for ms in (20, 53.9, 1000)], [50, 60, 1000])

    def test_a_crash_is_told_in_a_line(self):
        curve = {"name": "SQLite 3", "writers": 1, "first_answer_ms": 12.3, "full_speed_ms": None,
                 "before_tps": 2500}
        self.assertEqual(plot_restart.crash_label(curve),
                         "SQLite 3, 1 writer: first answer 12.3 ms, full speed not reached; "
                         "2.5 k transactions/s before")

    def test_parts_are_rebuild_and_rest_or_opening_and_rest(self):
        point = {"first_answer_ms": spread(30), "index_rebuild_ms": spread(20),
                 "rest_ms": spread(10), "open_ms": spread(25)}
        self.assertEqual(plot_restart.parts({"key": "flugs-pool", "points": [point]}),
                         ("rebuild", 20, 10))
        self.assertEqual(plot_restart.parts({"key": "lmdb", "points": [point]}),
                         ("opening", 25, 5))

    def test_the_caption_has_machine_commit_and_who_is_missing(self):
        data = {"machine": MACHINE, "commit": "abc", "figure": "7a", "engines": [],
                "stop": "kill", "runs": 3,
                "left_out": [{"engine": "lmdb", "why": "gone"}]}
        caption = plot_restart.caption(data)
        for words in ("a processor", "abc", "SIGKILL", "3 restarts", "Left out: lmdb"):
            self.assertIn(words, caption)

    def test_a_crashs_caption_has_each_guarantee_once(self):
        curves = [{"name": name, "subscribers": 1000, "users": 2, "medium": "tmpfs",
                   "guarantee": guarantee}
                  for name, guarantee in (("flugs 1, --index dram", "fences"),
                                          ("flugs 1, --index pool", "fences"), ("LMDB", "pages"))]
        caption = plot_restart.caption({"machine": MACHINE, "commit": "abc", "figure": "8a",
                                        "curves": curves, "left_out": []})
        self.assertEqual(caption.count("flugs 1: medium tmpfs, fences"), 1)
        self.assertIn("LMDB: medium tmpfs, pages", caption)


if __name__ == "__main__":
    unittest.main()
