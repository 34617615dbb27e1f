#!/usr/bin/env python3
"""What tools/bench-duckdb asks, and whether it would notice a wrong answer. Measures nothing."""

import datetime
import os
import sys
import unittest
from decimal import Decimal
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True

from duckdb_bench import hyper  # noqa: E402
from duckdb_bench.compare import difference, rounded  # noqa: E402
from duckdb_bench.figures import API, HYPER, LIVE, OWN, Times, summary, table  # noqa: E402
from duckdb_bench.queries import Query, read_queries  # noqa: E402

ROWS = [(1, "a", Decimal("1.10"), 0.5, None), (2, "b", Decimal("2.20"), 1e9, None),
        (3, None, Decimal("0.00"), float("nan"), datetime.date(2026, 1, 1))]


class Queries(unittest.TestCase):
    def test_there_are_22_of_each(self):
        for queries in (read_queries("tpch.sql", fraction="0.0001"),
                        read_queries("ch.sql", since="date '2000-01-01'", until="now()")):
            self.assertEqual([query.name for query in queries], [f"Q{k}" for k in range(1, 23)])
            for query in queries:
                self.assertRegex(query.sql, r"^(select|with) ")
                self.assertNotRegex(query.sql, r"[{};]")
                self.assertEqual(bool(query.sorted_by), "\norder by " in query.sql, query.name)


class Comparison(unittest.TestCase):
    def test_equal_rows_may_differ_in_order_and_rounding(self):
        self.assertEqual(difference(ROWS, ROWS[::-1]), "")
        self.assertEqual(difference([(0.1 + 0.2, 1)], [(0.3, 1)]), "")
        self.assertEqual(difference([(1, 2), (1, 1)], [(1, 1), (1, 2)], (0,)), "")
        # Rounding does not change which rows are compared with each other.
        self.assertEqual(difference([(0.1 + 0.2, 2.0), (0.3, 1.0)],
                                    [(0.3, 2.0), (0.1 + 0.2, 1.0)]), "")
        self.assertEqual(difference([], []), "")

    def test_every_difference_is_seen(self):
        for number, row in enumerate(ROWS):
            for column in range(len(row)):
                for wrong in (7, "c", Decimal("1.1000001"), 1.00001, None,
                              datetime.date(2027, 1, 1)):
                    if type(row[column]) is type(wrong) and row[column] == wrong:
                        continue
                    changed = row[:column] + (wrong,) + row[column + 1:]
                    others = ROWS[:number] + [changed] + ROWS[number + 1:]
                    self.assertNotEqual(difference(others, ROWS), "", changed)
                    self.assertNotEqual(difference(ROWS, others), "", changed)

    def test_rows_that_are_missing_or_there_twice_are_seen(self):
        self.assertIn("2 rows instead of 3", difference(ROWS[1:], ROWS))
        self.assertNotEqual(difference(ROWS[:2] + ROWS[:1], ROWS), "")
        self.assertNotEqual(difference([], ROWS), "")

    def test_the_order_that_was_asked_for_is_seen(self):
        self.assertIn("sorted by", difference(ROWS[::-1], ROWS, (0,)))

    def test_types_matter(self):
        self.assertNotEqual(difference([(1,)], [(1.0,)]), "")
        self.assertNotEqual(difference([(Decimal(1),)], [(1,)]), "")
        self.assertNotEqual(difference([(True,)], [(1,)]), "")

    def test_doubles_are_compared_with_as_many_digits_as_the_other_side_has(self):
        averages = [("a", 38273.12973462), ("b", 0.0499852957)]
        decimals = [("a", Decimal("38273.129735")), ("b", Decimal("0.049985"))]
        self.assertEqual(difference(decimals, rounded(averages, [None, 6])), "")
        wrong = [decimals[0], ("b", Decimal("0.049986"))]
        self.assertNotEqual(difference(wrong, rounded(averages, [None, 6])), "")
        # What is no double stays as it is, and so do doubles that the other side has as doubles.
        self.assertEqual(rounded([(1, None, Decimal("1.234"), 0.5, float("inf"))],
                                 [2, 2, 2, None, 2]),
                         [(1, None, Decimal("1.234"), 0.5, float("inf"))])


def times(name, **ms):
    made = Times(Query(name, "what it asks", (), "select 1"), rows=1)
    made.ms.update(ms)
    return made


def report(measured):
    return {"title": "TPC-H", "guarantee": "none", "transactions": 0, "problems": [],
            **summary(measured)}


class Figures(unittest.TestCase):
    MEASURED = [times("Q1", **{LIVE: [8.0], OWN: [4.0], API: [2.0], HYPER: [1.0, 1.0, 9.0]}),
                times("Q2", **{LIVE: [4.0], OWN: [4.0], API: [2.0], HYPER: [8.0]})]

    def test_the_better_of_two_is_what_flugs_is_compared_with(self):
        self.assertEqual([t.ratio_to_best() for t in self.MEASURED], [2.0, 0.5])
        found = summary(self.MEASURED)
        self.assertAlmostEqual(found["api_geometric_mean_ratio_to_best"], 1.0)
        self.assertEqual((found["api_worst_ratio_to_best"], found["api_worst_query"]), (2.0, "Q1"))
        self.assertAlmostEqual(found["geometric_mean_ratio"], 2 ** 0.5)
        self.assertAlmostEqual(found["api_geometric_mean_ratio"], 0.5)
        self.assertEqual([(query["hyper_ms"], query["api_ratio_to_best"])
                          for query in found["queries"]], [(1.0, 2.0), (8.0, 0.5)])
        lines = list(table(report(self.MEASURED)))
        self.assertRegex(lines[2], r" 2\.00 +0\.50 +1\.00 +2\.00$")
        self.assertIn("to the better of DuckDB and Hyper 1.00, at most 2.00 (Q1)", lines[-1])

    def test_without_hyper_its_columns_are_empty(self):
        measured = [times("Q1", **{LIVE: [8.0], OWN: [4.0], API: [2.0]})]
        found = summary(measured)
        self.assertIsNone(found["queries"][0]["hyper_ms"])
        self.assertIsNone(found["queries"][0]["api_ratio_to_best"])
        self.assertIsNone(found["api_geometric_mean_ratio_to_best"])
        self.assertIsNone(found["api_worst_query"])
        lines = list(table(report(measured)))
        self.assertRegex(lines[2], r" 2\.00 +0\.50$")
        self.assertNotIn("Hyper", lines[-1])

    def test_a_workload_without_the_api_has_no_figures_of_it(self):
        measured = [times("Q1", **{LIVE: [8.0], OWN: [4.0]})]
        self.assertIsNone(summary(measured)["api_geometric_mean_ratio"])
        self.assertRegex(list(table(report(measured)))[2], r" 2\.00$")


class HyperApi(unittest.TestCase):
    def test_its_words_for_the_queries(self):
        self.assertEqual(hyper.dialect("select year(l_shipdate) as l_year"),
                         "select extract(year from l_shipdate) as l_year")
        for query in read_queries("tpch.sql", fraction="0.0001"):
            self.assertNotRegex(hyper.dialect(query.sql), r"\byear\(", query.name)

    def test_absent_it_says_how_to_get_it(self):
        with mock.patch.dict(sys.modules, {"tableauhyperapi": None}):
            with self.assertRaisesRegex(hyper.CannotRun, "tools/setup --hyper"):
                hyper.Hyper("/nonexistent/t.hyper", 2)

    def test_one_that_does_not_start_leaves_nothing_behind(self):
        api = mock.MagicMock(__version__="0")
        api.HyperException = type("HyperException", (Exception,), {})
        api.Connection.side_effect = api.HyperException("no such folder\nContext: 0x1")
        with mock.patch.dict(sys.modules, {"tableauhyperapi": api}):
            with self.assertRaisesRegex(hyper.CannotRun, "^Hyper does not start: no such folder$"):
                hyper.Hyper("/nonexistent/t.hyper", 2)
        api.HyperProcess.return_value.close.assert_called_once_with()
        self.assertEqual(api.HyperProcess.call_args.args,
                         (api.Telemetry.DO_NOT_SEND_USAGE_DATA_TO_TABLEAU,))


if __name__ == "__main__":
    unittest.main()
