#!/usr/bin/env python3
"""What the README and the documents show holds: links lead somewhere, commands exist with the
options they are shown with, the pictures are those of their data, the program prints what it says.

tools/tests/test_readme.py FLUGS PROGRAM

FLUGS is the tool, PROGRAM the README's C++ program as the build compiled it.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(TESTS))
README_LINES_MAX = 150
FOLDER_README_LINES_MAX = 25
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
TOOLS = {"run", "test", "setup", "nightly", "dax-vm", "disk-vm", "docs", "rocksdb", "duckdb",
         "tidy.py", "pictures.py"}
GROUPS = ("pool", "bench", "prove")
FLUGS, PROGRAM = "", ""


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def documents():
    names = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"]
    for folder in ("docs", "docs/decisions", "docs/howto"):
        names += [f"{folder}/{name}" for name in sorted(os.listdir(os.path.join(ROOT, folder)))
                  if name.endswith(".md")]
    return names


def anchors(text):
    """What a code host makes of headings: letters, digits, hyphens for blanks."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(name)
    return found


def commands(text):
    """Commands of the project in indented lines, tables and running text."""
    found = []
    for line in text.splitlines():
        pieces = [line.strip()] if line.startswith("    ") else re.findall(r"`([^`]+)`", line)
        for piece in pieces:
            for command in re.split(r"&&", piece.split("   #")[0]):
                command = command.strip()
                if re.match(r"(tools/[\w.-]+|flugs( [a-z-]+)+)( |$)", command):
                    found.append(command)
    return found


class Readme(unittest.TestCase):
    def test_is_short(self):
        self.assertLessEqual(len(read("README.md").splitlines()), README_LINES_MAX)

    def test_links_lead_somewhere(self):
        for document in documents():
            text = FENCE.sub("", read(document))
            for markdown, attribute in LINK.findall(text):
                target = markdown or attribute
                if re.match(r"https?:|mailto:", target):
                    continue
                path, _, anchor = target.partition("#")
                path = os.path.normpath(os.path.join(os.path.dirname(document), path)) \
                    if path else document
                with self.subTest(document=document, link=target):
                    self.assertTrue(os.path.exists(os.path.join(ROOT, path)), "no such file")
                    if anchor and path.endswith(".md"):
                        self.assertIn(anchor, anchors(read(path)))

    def test_folders_readmes_are_short_and_name_files_that_exist(self):
        found = [os.path.relpath(os.path.join(folder, "README.md"), ROOT)
                 for top in sorted(os.listdir(ROOT))
                 if top not in ("build", "docs", ".git", ".cache")
                 for folder, _, names in os.walk(os.path.join(ROOT, top)) if "README.md" in names]
        self.assertGreater(len(found), 15)
        for readme in found:
            text, folder = read(readme), os.path.dirname(readme)
            self.assertLessEqual(len(text.splitlines()), FOLDER_README_LINES_MAX, readme)
            for name in re.findall(r"`([\w/]+\.(?:h|cc|md|py))`", text):
                with self.subTest(readme=readme, name=name):
                    self.assertTrue(any(os.path.exists(os.path.join(ROOT, base, name))
                                        for base in (folder, "", "include")), "no such file")

    def test_commands_exist_with_their_options(self):
        helps = {}
        for document in ("README.md", "docs/guide.md", "docs/operations.md", "docs/limits.md"):
            shown = commands(read(document))
            for command in shown:
                with self.subTest(document=document, command=command):
                    self.check(shlex.split(command), helps)
            if document in ("README.md", "docs/operations.md"):
                self.assertGreater(len(shown), 5)

    def check(self, words, helps):
        if words[0] != "flugs" and words[:1] != ["tools/run"]:
            tool = words[0].removeprefix("tools/")
            self.assertIn(tool, TOOLS)
            self.assertTrue(os.path.exists(os.path.join(ROOT, words[0])))
            return
        if len(words) == 1 or words[1] == "ARGS":
            return
        length = 3 if words[1] in GROUPS else 2
        name = " ".join(words[1:length])
        if name not in helps:
            helps[name] = subprocess.run([FLUGS, *words[1:length], "--help"], capture_output=True,
                                         text=True, check=True, stdin=subprocess.DEVNULL).stdout
        known = set(re.findall(r"--[a-z0-9-]+", helps[name]))
        for word in words[length:]:
            if word.startswith("--"):
                self.assertIn(word.split("=")[0], known)

    def test_library_configures_as_shown(self):
        [line] = [line.strip() for line in read("README.md").splitlines()
                  if line.strip().startswith("cmake -B")]
        words = shlex.split(line)
        with tempfile.TemporaryDirectory() as directory:
            words[words.index("-B") + 1] = directory
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_program_adds_up_what_all_its_runs_have_sold(self):
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            outputs = [self.output_in(first), self.output_in(first)]
            for pool in os.listdir(first):  # a copy of a closed pool is a backup
                shutil.copy(os.path.join(first, pool), second)
            outputs.append(self.output_in(second))
        self.assertEqual(outputs, ["1 sales, 12.50 euros\n", "2 sales, 25.00 euros\n",
                                   "3 sales, 37.50 euros\n"])

    def output_in(self, directory):
        return subprocess.run([PROGRAM], cwd=directory, capture_output=True, text=True,
                              check=True, stdin=subprocess.DEVNULL).stdout

    def test_pictures_are_those_of_their_data(self):
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "tools", "pictures.py"),
                               "--check"], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    FLUGS, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
