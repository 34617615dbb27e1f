#!/usr/bin/env python3
"""The programs of docs/tutorial.md do what the page says: a shop that is killed has every sale that
it reported when it is opened again; a shop with a rule refuses what breaks the rule.

tools/tests/test_tutorial.py SHOP STOCK
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

SHOP, STOCK = "", ""
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def sales(output):
    """How many sales were there at the start, and how many the process reported."""
    there = re.match(r"(\d+) sales are there, (\S+) euros; opened in \S+ ms\n", output)
    sold = re.findall(r"^(\d+) sold$", output, re.MULTILINE)
    return int(there[1]), there[2], int(sold[-1]) if sold else 0


class Tutorial(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(dir=MEMORY)
        self.addCleanup(folder.cleanup)
        self.pool = os.path.join(folder.name, "pool")

    def sell_and_be_killed(self):
        """Kills the shop when it has reported a sale."""
        with subprocess.Popen([SHOP, self.pool], stdout=subprocess.PIPE, text=True,
                              stdin=subprocess.DEVNULL) as shop:
            lines = [shop.stdout.readline(), shop.stdout.readline()]
            time.sleep(0.1)
            shop.kill()
            return sales("".join(lines) + shop.stdout.read())

    def test_killed_shop_has_all_that_it_sold(self):
        self.assertEqual(self.sell_and_be_killed()[:2], (0, "NULL"))
        last = 0
        for _ in range(3):
            there, euros, sold = self.sell_and_be_killed()
            self.assertGreaterEqual(there, last + 100_000)
            self.assertEqual(euros, f"{there * 5 // 2}.{there % 2 * 5}0")
            last = there
        self.assertGreater(sold, 0)

    def test_shop_with_a_rule_prints_what_the_page_shows(self):
        done = subprocess.run([STOCK, self.pool], capture_output=True, text=True, check=True,
                              stdin=subprocess.DEVNULL)
        page = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "tutorial.md")
        with open(page, encoding="utf-8") as file:
            shown = re.search(r"```text\n(three pieces.*?)```", file.read(), re.DOTALL)[1]

        def without_figures(text):
            # A merge by policy may have been there before the one that the program calls.
            return re.sub(r"in [\d.e-]+ ms|\d+ bytes|\d+ after", "#", text)
        self.assertEqual(without_figures(done.stdout), without_figures(shown))


if __name__ == "__main__":
    SHOP, STOCK = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
