#!/usr/bin/env python3
"""The commands of the tool `flugs`: how they are grouped and listed, the style of their --help, and
what they print of small pools.

tools/test_commands.py FLUGS
"""

import os
import re
import subprocess
import sys
import unittest

FLUGS = ""
WIDTH_MAX = 100
GROUPS = {
    "pool": ["info", "stats", "check", "estimate"],
    "bench": ["tatp", "ch", "scan", "restart", "merge", "transactions", "index-cost", "scaling"],
    "prove": ["explore", "crashtest", "kill-loop", "history", "fuzz-pool"],
}
KEPT_FREE = ["import", "export", "sql", "backup", "dump"]
PLACEHOLDERS = {"N", "POOL", "FILE", "DIR", "PROGRAM", "NAME", "WORDS", "READ_NS:WRITE_NS"}
CHOICES = r"[a-z0-9-]+(\|[a-z0-9-]+)+(,\.\.\.)?"


def flugs(*words, status=0):
    done = subprocess.run([FLUGS, *words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def commands():
    found = [("demo",)]
    for group, names in GROUPS.items():
        found += [(group, name) for name in names]
    return found


def listed(text):
    """{command: its line}"""
    return dict(re.findall(r"^  (flugs [a-z -]+?)  +(\S.*)$", text, re.MULTILINE))


class Lists(unittest.TestCase):
    def test_flugs_alone_lists_every_command_and_fails(self):
        printed = flugs(status=2).stdout
        self.assertEqual(list(listed(printed)), ["flugs " + " ".join(c) for c in commands()])
        self.assertEqual(printed, flugs("--help").stdout)

    def test_a_group_alone_lists_its_commands_and_fails(self):
        for group, names in GROUPS.items():
            printed = flugs(group, status=2).stdout
            self.assertEqual(list(listed(printed)), [f"flugs {group} {name}" for name in names])
            self.assertEqual(printed, flugs(group, "--help").stdout)

    def test_each_command_has_one_line_in_the_list(self):
        printed = flugs("--help").stdout
        for command, line in listed(printed).items():
            self.assertLessEqual(len(line) + 28, WIDTH_MAX, command)
        self.assertFalse([line for line in printed.splitlines() if line.startswith(" " * 8)])

    def test_an_unknown_command_says_which_there_are(self):
        for words, said in ((("tatp",), "there is 'flugs bench tatp'"),
                            (("bench", "explore"), "there is 'flugs prove explore'"),
                            (("pool", "demo"), "there is 'flugs demo'"),
                            (("pool", "bench"), "'flugs pool' lists all"),
                            (("nothing",), "'flugs' lists all"),
                            (("prove", "nothing"), "'flugs prove' lists all")):
            done = flugs(*words, status=2)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")

    def test_bad_usage_names_the_help_to_look_at(self):
        for words, said in ((("--bogus",), "'flugs --help'"),
                            (("pool", "info"), "'flugs pool info --help'"),
                            (("bench", "tatp", "--users", "0"), "'flugs bench tatp --help'")):
            self.assertIn(said, flugs(*words, status=2).stderr)

    def test_names_of_later_commands_are_free(self):
        for name in KEPT_FREE:
            self.assertIn("is no command", flugs("pool", name, status=2).stderr)


class Help(unittest.TestCase):
    """Of every command: all descriptions in one style, and the same word for the same thing."""

    def each(self):
        return [(command, flugs(*command, "--help").stdout) for command in commands()]

    def descriptions(self, text):
        """(words of the option or argument, description)"""
        part = text[text.index("Usage:"):].split("\n", 1)[1]
        found = []
        for line in part.splitlines():
            begun = re.match(r"  (\S.*?)(?:   *(\S.*))?$", line)
            if begun:
                found.append([begun[1], begun[2] or ""])
            elif line.startswith("    ") and found:
                found[-1][1] = (found[-1][1] + " " + line.strip()).strip()
        return found

    def test_lines_fit(self):
        for command, text in self.each():
            for line in text.splitlines():
                self.assertLessEqual(len(line), WIDTH_MAX, command)

    def test_descriptions_begin_with_a_capital_letter_and_have_no_full_stop(self):
        for command, text in self.each():
            first = text.splitlines()[0]
            self.assertRegex(first, r"^[A-Z].*[^.]$")
            self.assertTrue(text.splitlines()[1] == "", "the description has several lines")
            usage = "Usage: flugs " + " ".join(command)
            self.assertRegex(text, usage + r"( [A-Z]+)? \[OPTIONS\]\n")
            for option, description in self.descriptions(text):
                self.assertRegex(description, r"^[A-Z]", option)
                self.assertNotRegex(description, r"\.$|\.\)$", option)

    def test_placeholders_are_the_same_for_the_same_thing(self):
        for _, text in self.each():
            for option, _ in self.descriptions(text):
                if not option.startswith("-"):
                    self.assertIn(option, PLACEHOLDERS)
                elif option != "-h, --help":
                    words = re.fullmatch(r"--[a-z0-9-]+(?: (\S+))?", option)
                    self.assertTrue(words, option)
                    if words[1] and not re.fullmatch(CHOICES, words[1]):
                        self.assertIn(words[1], PLACEHOLDERS, option)

    def test_the_same_option_has_the_same_description(self):
        for option in ("--json", "--keep", "--index", "--help"):
            said = {description for _, text in self.each()
                    for words, description in self.descriptions(text)
                    if option in words.split()}
            self.assertEqual(len(said), 1, option)


if __name__ == "__main__":
    FLUGS = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
