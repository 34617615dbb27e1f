#!/usr/bin/env python3
"""What tools/bench-duckdb asks, and whether it would notice a wrong answer. Measures nothing."""

import datetime
import os
import sys
import unittest
from decimal import Decimal

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
sys.dont_write_bytecode = True

from duckdb_bench.compare import difference  # noqa: E402
from duckdb_bench.queries import read_queries  # noqa: E402

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


if __name__ == "__main__":
    unittest.main()
