#!/usr/bin/env python3
"""tools/nightly with programs that only say what they were asked for."""

import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
sys.path.insert(0, TOOLS)


def load_nightly():
    loader = importlib.machinery.SourceFileLoader("nightly", os.path.join(TOOLS, "nightly"))
    spec = importlib.util.spec_from_loader("nightly", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


NIGHTLY = load_nightly()
NIGHTLY_PARTS = sys.modules["nightly_parts"]

# Notes its arguments and answers with some figures. With a file "fails" beside it only the
# commands in "passes" pass.
STUB = """#!/bin/sh
echo "$@" >>"$(dirname "$0")/calls"
if [ -e "$(dirname "$0")/fails" ] && ! grep -q "^$2" "$(dirname "$0")/passes"; then exit 1; fi
while [ $# -gt 0 ]; do
  [ "$1" != --json ] || echo '{"states": 5, "failures": 0, "rounds": 7, "inputs": 9}' >"$2"
  shift
done
"""


class Nightly(unittest.TestCase):
    def setUp(self):
        self.build = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.build)
        self.tools = os.path.join(self.build, "tools")
        self.out = os.path.join(self.build, "out")
        os.makedirs(self.tools)
        self.write("flugs", STUB)
        os.chmod(os.path.join(self.tools, "flugs"), 0o755)

    def write(self, name, content):
        with open(os.path.join(self.tools, name), "w", encoding="utf-8") as file:
            file.write(content)

    def run_nightly(self, *arguments):
        """(exit status, what it printed)"""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                status = NIGHTLY.main([*arguments, "--build", self.build, "--out", self.out])
            except SystemExit as exit_:
                status = exit_.code
        return status, printed.getvalue()

    def calls(self):
        path = os.path.join(self.tools, "calls")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            calls = file.read().splitlines()
        os.unlink(path)
        return calls

    def result(self, name):
        with open(os.path.join(self.out, f"{name}.json"), encoding="utf-8") as file:
            return json.load(file)

    def test_a_night_checks_50_million_states_in_steps_that_repeat_none(self):
        status, _ = self.run_nightly("explore")
        self.assertEqual(status, 0)
        calls = self.calls()
        rounds = [call.split("--first-round ")[1].split()[0] for call in calls]
        states = [int(call.split("--states ")[1].split()[0]) for call in calls]
        self.assertEqual(sum(states), 50_000_000)
        self.assertEqual(len(set(rounds)), len(calls))
        self.assertEqual(["--mutations" in call for call in calls], [True] + [False] * 9)
        self.assertTrue(all("--sites" in call for call in calls))

    def test_a_scale_makes_all_sizes_smaller(self):
        status, _ = self.run_nightly("--scale", "0.001", "explore", "kill_tatp", "fuzz_pool")
        self.assertEqual(status, 0)
        explore, kills, fuzz = self.calls()
        self.assertIn("--states 50000 ", explore)
        self.assertIn("--workload tatp --rounds 2 ", kills)
        self.assertIn("--inputs 1000 ", fuzz)

    def test_what_passed_is_not_run_again_unless_asked_or_changed(self):
        size = ("--scale", "0.001", "explore")
        self.run_nightly(*size)
        self.assertEqual(len(self.calls()), 1)
        status, printed = self.run_nightly(*size)
        self.assertEqual((status, self.calls()), (0, []))
        self.assertIn("passed already", printed)
        self.run_nightly(*size, "--again")
        self.assertEqual(len(self.calls()), 1)
        self.run_nightly(*size, "--seed", "2")
        self.assertEqual(len(self.calls()), 1)
        self.write("flugs", STUB + "# another build\n")
        self.run_nightly(*size, "--seed", "2")
        self.assertEqual(len(self.calls()), 1)

    def test_a_failure_is_told_and_run_again(self):
        self.write("fails", "")
        self.write("passes", "fuzz-pool\n")
        parts = ("--scale", "0.2", "explore", "fuzz_pool")
        status, printed = self.run_nightly(*parts)
        self.assertEqual(status, 1)
        self.assertIn("FAILED", printed)
        self.assertEqual(len(self.calls()), 4)  # of explore 2, of fuzz_pool 2
        self.assertFalse(self.result("explore")["ok"])
        self.assertTrue(self.result("fuzz_pool")["ok"])
        summary = self.result("summary")
        self.assertFalse(summary["ok"])
        self.assertEqual([part["ok"] for part in summary["parts"]], [False, True])
        os.unlink(os.path.join(self.tools, "fails"))
        self.assertEqual(self.run_nightly(*parts)[0], 0)
        self.assertEqual(len(self.calls()), 2)  # those of explore
        self.assertTrue(self.result("summary")["ok"])

    def test_figures_are_added_up_over_the_steps(self):
        self.run_nightly("kill_random")
        self.assertEqual(self.result("kill_random")["figures"], {"rounds": 28, "failures": 0})

    def test_a_part_without_its_interpreter_is_skipped(self):
        part = next(part for part in NIGHTLY.PARTS if part.name == "kill_python")
        with unittest.mock.patch.object(part, "needs", os.path.join(self.build, "no_python")):
            status, printed = self.run_nightly("kill_python", "kill_tatp")
        self.assertEqual(status, 0)
        self.assertRegex(printed, r"(?m)^kill_python +0/0 +0 +skipped")
        self.assertRegex(printed, r"(?m)^kill_tatp .* passed")
        self.assertEqual([part["skipped"] for part in self.result("summary")["parts"]],
                         [False, True])

    def test_each_run_without_the_gil_has_its_own_step_and_the_module_of_its_build(self):
        self.write("python", "#!/bin/sh\n[ -e \"$PYTHONPATH/flugs/_flugs.so\" ] || exit 1\n"
                             "echo \"3 passed, 1 skipped in 0.1s, seed $PYTHONHASHSEED\"\n")
        python = os.path.join(self.tools, "python")
        os.chmod(python, 0o755)
        os.makedirs(os.path.join(self.build, "bindings", "python", "flugs"))
        module = os.path.join(self.build, "bindings", "python", "flugs", "_flugs.so")
        part = next(part for part in NIGHTLY.PARTS if part.name == "free_threaded")
        with (unittest.mock.patch.object(part, "needs", python),
              unittest.mock.patch.object(NIGHTLY_PARTS, "PYTHON_FREE", python)):
            self.assertEqual(self.run_nightly("free_threaded")[0], 1)  # there is no module
            with open(module, "w", encoding="utf-8"):
                pass
            self.assertEqual(self.run_nightly("free_threaded")[0], 0)
        result = self.result("free_threaded")
        self.assertEqual(result["figures"], {"tests": 15, "skipped": 5, "failures": 0})
        self.assertEqual(len({step["identity"] for step in result["steps"]}), 5)

    def test_a_step_may_say_that_it_cannot_run_here(self):
        for may_skip in (True, False):
            step = NIGHTLY_PARTS.Step("0", ["sh", "-c", "exit 77"], programs=(__file__,),
                                      may_skip=may_skip)
            with unittest.mock.patch.object(NIGHTLY_PARTS.Part, "steps", lambda *_: [step]):
                status, printed = self.run_nightly("wheel")
            self.assertEqual(status, 0 if may_skip else 1)
            result = "skipped" if may_skip else "FAILED"
            self.assertRegex(printed, f"(?m)^wheel +0/1 +0 +{result}")
            self.assertFalse(self.result("wheel")["steps"][0]["ok"])

    def test_bad_arguments_are_refused(self):
        for arguments in (["no_such_part"], ["--scale", "0"], ["--scale", "x"], ["--seed", "-1"]):
            self.assertEqual(self.run_nightly(*arguments)[0], 2, arguments)
        self.assertEqual(self.calls(), [])

    def test_programs_that_are_not_there_are_an_error(self):
        os.unlink(os.path.join(self.tools, "flugs"))
        status, printed = self.run_nightly("explore")
        self.assertEqual(status, 2)
        self.assertIn("flugs", printed)

    def test_the_list_names_every_part(self):
        status, printed = self.run_nightly("--list")
        self.assertEqual(status, 0)
        for name in NIGHTLY.names_of_parts():
            self.assertIn(name, printed)


if __name__ == "__main__":
    unittest.main()
