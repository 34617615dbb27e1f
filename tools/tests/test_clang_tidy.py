#!/usr/bin/env python3
"""Has clang_tidy.py read small folders, with and without findings."""

import os
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.realpath(__file__))))

import clang_tidy  # noqa: E402

MEDIAN_OF_INTS = """#include <vector>
namespace flugs {
namespace {
int median(const std::vector<int>& sorted) { return sorted[sorted.size() / 2]; }
}  // namespace
int middle(const std::vector<int>& sorted) { return median(sorted); }
}  // namespace flugs
"""
# Alone it compiles; behind the other the call of median is ambiguous.
MEDIAN_BY_DEFAULT = """#include <vector>
namespace flugs {
namespace {
int median(const std::vector<int>& sorted, int rest = 0) { return sorted[0] + rest; }
}  // namespace
int least(const std::vector<int>& sorted) { return median(sorted); }
}  // namespace flugs
"""
WITH_FINDING = "double half(int of) { return of / 2; }\n"
DOES_NOT_COMPILE = "int broken() { return nowhere; }\n"


@unittest.skipUnless(shutil.which(clang_tidy.CLANG_TIDY), clang_tidy.CLANG_TIDY + " is missing")
class Runs(unittest.TestCase):
    """check() reads sources as one run of a folder that CMake compiles together."""

    def setUp(self):
        self.root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.root)

    def check(self, **sources):
        together = os.path.join(self.root, "CMakeFiles/folder.dir/Unity/unity_0_cxx.cxx")
        run = clang_tidy.Run(self.root, {"command": f"c++ -std=c++20 -o unity.o -c {together}",
                                         "directory": self.root, "file": together})
        for name, text in sources.items():
            path = os.path.join(self.root, name + ".cc")
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
            run.add(path, name)
        return run.check(["--checks=-*,bugprone-integer-division", "--warnings-as-errors=*",
                          "--header-filter=.*"], [])

    def test_sources_without_findings_pass(self):
        self.assertTrue(self.check(first=MEDIAN_OF_INTS, second="int two() { return 2; }\n")[0])

    def test_names_that_clash_are_a_finding_that_says_what_to_do(self):
        passed, output = self.check(first=MEDIAN_OF_INTS, second=MEDIAN_BY_DEFAULT)
        self.assertFalse(passed)
        self.assertIn("median", output)
        self.assertIn("must differ", output)

    def test_findings(self):
        passed, output = self.check(first=MEDIAN_OF_INTS, second=WITH_FINDING)
        self.assertFalse(passed)
        self.assertIn("bugprone-integer-division", output)
        self.assertNotIn("median", output)

    def test_a_source_that_is_compiled_with_others_is_known(self):
        together = os.path.join(self.root, "build/Unity")
        os.makedirs(together)
        with open(os.path.join(together, "unity_0_cxx.cxx"), "w", encoding="utf-8") as file:
            file.write('#include "/folder/first.cc"\n#include "/folder/second.cc"\n')
        entries = [{"directory": self.root, "file": "build/Unity/unity_0_cxx.cxx"},
                   {"directory": self.root, "file": "/folder/third.cc"}]
        self.assertEqual(clang_tidy.compiled_together(entries),
                         {"/folder/first.cc", "/folder/second.cc"})

    def test_a_source_that_does_not_compile_is_a_finding(self):
        passed, output = self.check(first=MEDIAN_OF_INTS, second=DOES_NOT_COMPILE)
        self.assertFalse(passed)
        self.assertIn("nowhere", output)


if __name__ == "__main__":
    unittest.main()
