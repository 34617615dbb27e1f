#!/usr/bin/env python3
"""The rules of CONTRIBUTING.md that a program can check. No file is exempt from any of them.

tools/tidy.py          checks; prints one line per violation; exit status 1 if there is any
tools/tidy.py --fix    formats the C++ sources first
"""

import argparse
import collections
import os
import re
import shutil
import subprocess
import sys

import cxx_text

LINE_MAX = 100
FILE_LINES_MAX = 600
FUNCTION_LINES_MAX = 60
FOLDER_SOURCES_MAX = 40
HEADER_INCLUDES_MAX = 12
ALL_PUBLIC = "include/flugs/flugs.h"  # consists of includes
CLASS_FUNCTIONS_MAX = 80
# Headers of large classes, and the number of files that may include each.
INCLUDERS_MAX = {"tables/table/table.h": 20}
# Checks per 1000 lines, in each folder of the library with more than CHECKED_LINES_MIN lines.
CHECKS_MIN = 13
CHECKED_LINES_MIN = 1000
README_LINES_MAX = 25
TITLE_MAX = 72
CLANG_FORMAT = "clang-format-19"


def folders_above(name):
    """Of "verify/crash/rig": "verify" and "verify/crash"."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


# Folder or sub-folder -> folders whose headers its files may include, besides its own. A folder
# with sub-folders stands for all of them. Public headers count as "flugs", the few of them that
# every layer may use as "base".
BELOW_TABLES = {"base", "flugs", "pmem", "columns", "mvcc", "recovery"}
BELOW_QUERY = {"base", "flugs", "pmem", "columns", "mvcc", "tables", "engine"}
BELOW_TOOLS = {"base", "flugs", "bench", "verify"}
MAY_INCLUDE = {
    "flugs": {"flugs"},
    "base": {"base"},
    "pmem/medium": {"base"},
    "pmem/journal": {"base", "pmem/medium"},
    "pmem/pool": {"base", "pmem/medium"},
    "pmem/space": {"base", "pmem/medium", "pmem/pool"},
    "pmem/kinds": {"base", "pmem"},
    "columns/cells": {"base", "pmem"},
    "columns/index": {"base", "pmem", "columns/cells"},
    "columns/dictionary": {"base", "pmem", "columns/cells", "columns/index"},
    "columns/column": {"base", "pmem", "columns/cells", "columns/dictionary"},
    "columns/main": {"base", "pmem", "columns/cells", "columns/column"},
    "mvcc": {"base", "pmem"},
    "recovery": {"base", "pmem", "columns", "mvcc"},
    "tables/catalog": BELOW_TABLES,
    "tables/rows": BELOW_TABLES | {"tables/catalog"},
    "tables/keys": BELOW_TABLES | {"tables/catalog", "tables/rows"},
    "tables/transactions": BELOW_TABLES | {"tables/catalog", "tables/rows"},
    "tables/data": BELOW_TABLES
    | {"tables/catalog", "tables/rows", "tables/keys", "tables/transactions"},
    "tables/opening": BELOW_TABLES
    | {"tables/catalog", "tables/rows", "tables/keys", "tables/transactions", "tables/data"},
    "tables/batches": BELOW_TABLES
    | {"tables/catalog", "tables/rows", "tables/keys", "tables/transactions", "tables/data"},
    "tables/table": BELOW_TABLES | {"tables"},
    "engine/merge": BELOW_TABLES | {"tables"},
    "engine/background": BELOW_TABLES | {"tables", "engine/merge"},
    "engine/database": BELOW_TABLES | {"tables", "engine/merge", "engine/background"},
    "engine/audit": BELOW_TABLES | {"tables", "engine"},
    "query/vectors": BELOW_QUERY,
    "query/expressions": BELOW_QUERY | {"query/vectors"},
    "query/scan": BELOW_QUERY | {"query/vectors", "query/expressions"},
    "query/operators": BELOW_QUERY | {"query/vectors", "query/expressions", "query/scan"},
    "query/stream": BELOW_QUERY | {"query/vectors", "query/expressions", "query/scan"},
    "query/plan": BELOW_QUERY | {"query/vectors", "query/expressions", "query/scan",
                                 "query/operators", "query/stream"},
    "query/arrow": BELOW_QUERY | {"query"},
    "bench/support": {"base", "flugs"},
    "bench/tatp": {"base", "flugs", "bench/support"},
    "bench/tpcc": {"base", "flugs", "bench/support"},
    "bench/htap": {"base", "flugs", "bench/support", "bench/tpcc"},
    "bench/ycsb": {"base", "flugs", "bench/support"},
    "bench/restart": {"base", "flugs", "bench/support"},
    "bench/scan": {"base", "flugs", "bench/support"},
    "bench/groups": {"base", "flugs", "bench/support"},
    "bench/random": {"base", "flugs", "bench/support"},
    "bench/scaling": {"base", "flugs", "bench/support"},
    "bench/growth": {"base", "flugs", "bench/support"},
    "bench/loads": {"base", "flugs", "bench/support", "bench/restart"},
    "bench/instructions": {"base", "flugs", "bench/tatp", "bench/tpcc"},
    "verify/isolation/checker": {"base"},
    "verify/isolation/sessions": BELOW_TABLES | {"tables", "engine", "verify/isolation/checker"},
    "verify/crash/rig": BELOW_TABLES | {"tables", "engine"},
    "verify/crash/scripts": BELOW_TABLES | {"tables", "engine", "verify/crash/rig"},
    "verify/crash/exploration": BELOW_TABLES | {"tables", "engine", "verify/crash"},
    "verify/damage": BELOW_TABLES | {"tables", "engine", "bench"},
    "tools/support": BELOW_TOOLS,
    "tools/report": BELOW_TOOLS | {"tools/support"},
    "tools/children": BELOW_TOOLS | {"tools/support", "tools/report"},
    "tools/restart": BELOW_TOOLS | {"tools/support", "tools/report", "tools/children"},
    "tools/sql": {"base", "flugs", "bindings/sqlite"},
    "tools/commands": BELOW_TOOLS | {"tools/support", "tools/report", "tools/children",
                                     "tools/restart", "tools/sql", "bindings/fields"},
    "tools/harness": BELOW_TOOLS | {"tools/support"},
    "tools/peers/engines": {"base", "flugs", "bench", "tools/support"},
    "tools/peers/restart": {"base", "flugs", "bench", "tools/support", "tools/peers/engines"},
    "tools/peers/tpcc": {"base", "flugs", "bench", "tools/peers/engines"},
    "tools/peers/ycsb": {"base", "flugs", "bench", "tools/peers/engines"},
    "bindings/fields": {"base", "flugs"},
    "bindings/pools": {"base", "flugs"},
    "bindings/python": {"base", "flugs", "bindings/fields", "bindings/duckdb"},
    "bindings/c": {"base", "flugs", "bindings/fields"},
    "bindings/sqlite": {"base", "flugs", "bindings/fields", "bindings/pools"},
    "bindings/duckdb": {"base", "flugs", "bindings/pools"},
    "include": {"flugs"},
    "examples": {"base", "flugs", "bench"},
    "docs/snippets": {"base", "flugs"},
    "test": BELOW_TABLES | {"tables", "engine", "query", "bench", "tools", "verify",
                             "bindings/sqlite", "bindings/duckdb"},
}
# Folders with sub-folders have no sources of their own.
DIVIDED = {above for name in MAY_INCLUDE for above in folders_above(name)}
# Headers of C that public headers may include, because C programs include these, too.
C_HEADERS = ("stdint.h", "stddef.h", "stdbool.h")
LAYERS = ("base", "pmem", "columns", "mvcc", "recovery", "tables", "engine", "query")
PUBLIC_DIR = "include/flugs/"
# Where each folder with sources has a README.md, and each folder above it.
WITH_README = LAYERS + ("include", "bench", "verify", "tools")
# The public header that lies in no folder, and who includes it.
C_ABI = "flugs.h"
C_ABI_USERS = ("bindings/c", "docs/snippets", "test")
PUBLIC_WORDS = {"condition", "status", "ids", "index_place", "progress", "schema", "value",
                "function_ref", "recovery_report"}
# Folders that may speak to the medium themselves.
PERSISTENCE_DIRS = ("pmem/", "test/faults/", "test/pmem/", "test/support/")
PERSISTENCE_DOC = "docs/persistence.md"
# Where the library starts threads, each of which may be refused: a Status says so.
THREAD_STARTER = "base/thread.cc"

SOURCE_DIRS = ("include", "base", "pmem", "columns", "mvcc", "recovery", "tables", "engine",
               "query", "bindings", "bench", "verify", "tools", "examples", "test")
CXX = (".h", ".cc", ".c")
TEXTS = CXX + (".py", ".cmake", ".json", "CMakeLists.txt")

# Written in halves so that this file does not violate its own rule.
UNFINISHED = re.compile(
    r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b|(?i:\bfor " r"now\b|\bnot (yet )?" r"implemented\b)")
PERSISTENCE_CODE = re.compile(
    r"\b_mm_(clwb|clflush|clflushopt|sfence|mfence|stream_\w+)\b"
    r"|\b__builtin_ia32_(clwb|clflush\w*|sfence|mfence)\b"
    r"|\bpmemobj_\w+|\bpmem_(persist|flush|drain|deep_\w+|msync|map_file|mem\w+|is_pmem|has_\w+)\b"
    r"|\bmsync\s*\(|<libpmem\w*\.h>|<libpmemobj/")
THREAD_START = re.compile(
    r"\bstd::(thread|async)\b(?!::)|\bstd::jthread(\s+\w+)?\s*[({]|\bpthread_create\b"
    r"|<tbb/|<execution>")
PERSISTENCE_ASM = re.compile(r"\basm\b[^;]*\b(clwb|clflush|clflushopt|sfence|mfence|movnt\w+)\b")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+([<"])([^>"]+)[>"]', re.MULTILINE)
CHECK = re.compile(r"\b(?:FLUGS_D?CHECK|static_assert)\(")
LABEL = re.compile(r"^([a-z][a-z0-9_-]*)/([0-9]+[a-z]?)$")
PROTOCOL = re.compile(r"^\s*//+\s*Protocol ([a-z][a-z0-9_-]*)\b")
PROTOCOL_STEP = re.compile(r"^\s*//+\s+([0-9]+[a-z]?)\s+\S")
DISABLED = re.compile(r"\[\.|\[!(hide|mayfail|shouldfail)\]")
TRAILER = re.compile(r"^[A-Z][A-Za-z-]*: \S")  # "Signed-off-by: ...", which says no reason

Violation = collections.namedtuple("Violation", "path line rule message")


def layer_of(path):
    """The entry of MAY_INCLUDE for a source or an included name: "tables/rows", "pmem"."""
    above = folders_above(path) or [path]
    return next((name for name in reversed(above) if name in MAY_INCLUDE), above[0])


def is_of_library(path):
    return path.startswith(PUBLIC_DIR) or path.split("/")[0] in LAYERS


def source_files(root):
    """Every text file of the project that has rules, as paths from `root` with '/'."""
    found = []
    for top in SOURCE_DIRS + ("cmake", ".ci"):
        for folder, folders, names in os.walk(os.path.join(root, top)):
            folders[:] = sorted(f for f in folders if f not in ("build", "__pycache__"))
            for name in sorted(names):
                path = os.path.join(folder, name)
                if name.endswith(TEXTS) or (os.access(path, os.X_OK) and "." not in name):
                    found.append(os.path.relpath(path, root).replace(os.sep, "/"))
    return found + [name for name in ("CMakeLists.txt", "CMakePresets.json")
                    if os.path.exists(os.path.join(root, name))]


class Tidy:
    """One look at one tree: reads each file once, collects the violations."""

    def __init__(self, root):
        self.root = root
        self.paths = source_files(root)
        self.text = {path: self._read(path) for path in self.paths}
        self.violations = []
        self.includes = {}  # (folder, folder that it includes) -> where

    def _read(self, path):
        try:
            with open(os.path.join(self.root, path), encoding="utf-8") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def _report(self, path, line, rule, message):
        self.violations.append(Violation(path, line, rule, message))

    def run(self):
        for path in self.paths:
            self._check_size(path)
            self._check_unfinished(path)
            if path.endswith(CXX):
                self._check_pragma_once(path)
                self._check_includes(path)
                self._check_persistence(path)
                self._check_threads(path)
                self._check_functions(path)
                self._check_classes(path)
                self._check_disabled(path)
                self._check_listed(path)
        self._check_folders()
        self._check_readmes()
        self._check_includers()
        self._check_checks()
        self._check_labels()
        return self.violations

    def _check_size(self, path):
        lines = self.text[path].split("\n")
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                self._report(path, number, "line", f"{len(line)} columns, at most {LINE_MAX}")
        count = len(lines) - (lines[-1] == "")
        if count > FILE_LINES_MAX:
            self._report(path, count, "file", f"{count} lines, at most {FILE_LINES_MAX}")

    def _check_unfinished(self, path):
        for number, line in enumerate(self.text[path].split("\n"), 1):
            match = UNFINISHED.search(line)
            if match:
                self._report(path, number, "unfinished", f"'{match[0]}': finish it or leave it out")

    def _check_pragma_once(self, path):
        if path.endswith(".h") and not re.search(r"^#pragma once$", self.text[path], re.MULTILINE):
            self._report(path, 1, "pragma-once", "a header without #pragma once")

    def _check_includes(self, path):
        folder = "flugs" if path.startswith(PUBLIC_DIR) else layer_of(path)
        if folder in DIVIDED:
            self._report(path, 1, "layering", f"{folder}/ has sub-folders: put it into one of them")
            return
        text = cxx_text.without_comments(self.text[path])
        ours = 0
        for match in INCLUDE.finditer(text):
            line = cxx_text.line_of(text, match.start())
            self._check_include(path, line, folder, match[1], match[2])
            ours += match[1] == '"'
        is_counted = path.endswith(".h") and is_of_library(path) and path != ALL_PUBLIC
        if is_counted and ours > HEADER_INCLUDES_MAX:
            message = f"a header with {ours} of ours, at most {HEADER_INCLUDES_MAX}"
            self._report(path, 1, "includes", message)

    def _check_include(self, path, line, folder, bracket, name):
        if bracket == "<":
            own = name.split("/")[0] in DIVIDED or layer_of(name) in MAY_INCLUDE
            if own:
                self._report(path, line, "include", f'our own headers are included as "{name}"')
            elif folder == "flugs" and re.search(r"[./]", name) and name not in C_HEADERS:
                self._report(path, line, "layering", f"public headers know no <{name}>")
            return
        if name == C_ABI:
            if folder not in C_ABI_USERS:
                self._report(path, line, "layering", f'{folder} must not know "{name}"')
            return
        target = layer_of(name)
        if target not in MAY_INCLUDE or "/" not in name:
            self._report(path, line, "include", f'"{name}" must be written as "folder/file.h"')
            return
        if target == "flugs" and name.split("/")[1].removesuffix(".h") in PUBLIC_WORDS:
            target = "base"
        allowed = MAY_INCLUDE[folder] | {folder} | ({"base"} if folder == "flugs" else set())
        if not {target, *folders_above(target)} & allowed:
            self._report(path, line, "layering", f'{folder} must not know "{name}"')
        else:
            self.includes.setdefault((os.path.dirname(path), os.path.dirname(name)), (path, line))

    def _check_folders(self):
        """Few sources lie flat in a folder, and no two folders include each other."""
        # Scripts count, too; those that people start have no suffix.
        flat = collections.Counter(os.path.dirname(path) for path in self.paths
                                   if path.endswith((*CXX, ".py"))
                                   or "." not in os.path.basename(path))
        for folder, count in sorted(flat.items()):
            if count > FOLDER_SOURCES_MAX:
                message = f"{count} sources lie flat in it, at most {FOLDER_SOURCES_MAX}"
                self._report(folder, 1, "flat", message)
        for (folder, other), (path, line) in sorted(self.includes.items()):
            if folder < other and (other, folder) in self.includes:
                self._report(path, line, "mutual", f"{folder}/ and {other}/ include each other")

    def _check_readmes(self):
        folders = {folder for path in self.paths if path.endswith(CXX + (".py",))
                   for folder in folders_above(path) if path.split("/")[0] in WITH_README}
        for folder in sorted(folders):
            readme = folder + "/README.md"
            count = len(self._read(readme).splitlines())
            if count == 0:
                self._report(folder, 1, "readme", "it has no README.md")
            elif count > README_LINES_MAX:
                message = f"{count} lines, at most {README_LINES_MAX}"
                self._report(readme, count, "readme", message)

    def _check_includers(self):
        for header, most in INCLUDERS_MAX.items():
            folder = os.path.dirname(header)
            if header not in self.paths and any(path.startswith(folder + "/")
                                                for path in self.paths):
                self._report(folder, 1, "includers", f"{header} is gone: name the header of the "
                                                     "class in INCLUDERS_MAX")
            count = sum(header in self._included_by(path) for path in self.paths
                        if path.endswith(CXX))
            if count > most:
                self._report(header, 1, "includers", f"{count} files include it, at most {most}")

    def _included_by(self, path):
        text = cxx_text.without_comments(self.text[path])
        return {match[2] for match in INCLUDE.finditer(text)}

    def _check_checks(self):
        """A folder of the library states its invariants: by itself, and with its sub-folders."""
        lines, checks = collections.Counter(), collections.Counter()
        for path in self.paths:
            if not path.endswith(CXX) or path.split("/")[0] not in LAYERS + ("include",):
                continue
            text = self.text[path]
            for folder in {os.path.dirname(path), path.split("/")[0]}:
                lines[folder] += text.count("\n")
                checks[folder] += len(CHECK.findall(cxx_text.code_only(text)))
        for folder, count in sorted(lines.items()):
            if count > CHECKED_LINES_MIN and checks[folder] * 1000 < count * CHECKS_MIN:
                message = f"{checks[folder]} in {count} lines, at least {CHECKS_MIN} per 1000"
                self._report(folder, 1, "checks", message)

    def _check_persistence(self, path):
        if path.startswith(PERSISTENCE_DIRS):
            return
        text = self.text[path]
        code = cxx_text.code_only(text)
        plain = cxx_text.without_comments(text)
        found = list(PERSISTENCE_CODE.finditer(code)) + list(PERSISTENCE_ASM.finditer(plain))
        for match in found:
            line = cxx_text.line_of(text, match.start())
            self._report(path, line, "persistence", f"'{match[0]}' belongs into pmem/")

    def _check_threads(self, path):
        if path == THREAD_STARTER or path.split("/")[0] not in LAYERS:
            return
        text = self.text[path]
        for match in THREAD_START.finditer(cxx_text.code_only(text)):
            line = cxx_text.line_of(text, match.start())
            self._report(path, line, "thread",
                         f"'{match[0]}': threads are started by start_thread of base/thread.h")

    def _check_functions(self, path):
        for first, last in cxx_text.functions(self.text[path]):
            count = last - first + 1
            if count > FUNCTION_LINES_MAX:
                message = f"a function of {count} lines, at most {FUNCTION_LINES_MAX}"
                self._report(path, first, "function", message)

    def _check_classes(self, path):
        if not is_of_library(path):
            return
        for name, line, count in cxx_text.class_functions(self.text[path]):
            if count > CLASS_FUNCTIONS_MAX:
                message = f"{name} has {count} functions, at most {CLASS_FUNCTIONS_MAX}"
                self._report(path, line, "class", message)

    def _check_disabled(self, path):
        text = self.text[path]
        if path.startswith("test/"):
            for start, end in cxx_text.calls(cxx_text.code_only(text), r"\w*TEST_CASE\w*"):
                match = DISABLED.search(text, start, end)
                if match:
                    line = cxx_text.line_of(text, match.start())
                    self._report(path, line, "disabled", f"'{match[0]}' disables a test")
        for match in re.finditer(r"^[ \t]*#[ \t]*if[ \t]+0\b", text, re.MULTILINE):
            line = cxx_text.line_of(text, match.start())
            self._report(path, line, "disabled", "code that is switched off")

    def _check_listed(self, path):
        """A source that no CMakeLists.txt names is a source that is not built, a test not run."""
        if not path.endswith((".cc", ".c")):
            return
        folder, _, name = path.rpartition("/")
        while folder:
            listed = self.text.get(folder + "/CMakeLists.txt", "")
            inside = path[len(folder) + 1:]
            if re.search(r"(?<![\w/])%s(?![\w/])" % re.escape(inside), listed):
                return
            folder = folder.rpartition("/")[0]
        self._report(path, 1, "listed", f"{name} is in no CMakeLists.txt")

    def _protocol_steps(self):
        """{"commit/1", ...}: the steps of every protocol table."""
        steps = set()
        for path in self.paths:
            if not path.endswith(CXX) or path.split("/")[0] not in LAYERS:
                continue
            name = None
            for line in self.text[path].split("\n"):
                match = PROTOCOL.match(line)
                if match:
                    name = match[1]
                elif not line.lstrip().startswith("//"):
                    name = None
                elif name and (match := PROTOCOL_STEP.match(line)):
                    steps.add(f"{name}/{match[1]}")
        return steps

    def _check_labels(self):
        steps = self._protocol_steps()
        document = self._read(PERSISTENCE_DOC)
        for path in self.paths:
            if not path.endswith(CXX) or path.split("/")[0] not in LAYERS:
                continue
            text = self.text[path]
            calls = list(cxx_text.calls(cxx_text.code_only(text), r"(?:flush|fence|persist)\w*"))
            for position, label in cxx_text.literals(text):
                line = cxx_text.line_of(text, position)
                if LABEL.match(label):
                    if label not in steps:
                        self._report(path, line, "label", f'"{label}" is in no protocol table')
                    if not re.search(r"(?<![\w/-])%s(?!\w)" % re.escape(label), document):
                        self._report(path, line, "label", f'"{label}" is not in {PERSISTENCE_DOC}')
                elif any(start <= position < end for start, end in calls):
                    self._report(path, line, "label", f'"{label}" is not a label like "commit/1"')

    def cxx_paths(self):
        return [os.path.join(self.root, p) for p in self.paths if p.endswith(CXX)]

    def check_format(self):
        if not self.cxx_paths():
            return
        command = [CLANG_FORMAT, "--dry-run", "-Werror", "--ferror-limit=1"] + self.cxx_paths()
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        errors = re.findall(r"^(.+?):(\d+):\d+: error: .*clang-format", result.stderr, re.MULTILINE)
        for name, line in errors:
            path = os.path.relpath(name, self.root)
            self._report(path, int(line), "format", "run tools/tidy.py --fix")
        if result.returncode != 0 and not errors:
            self._report(".clang-format", 1, "format", result.stderr.strip())

    def check_commits(self):
        """The title and the body of each commit since origin/main; of HEAD if there is none. A
        merge, and a tree without a history, have none to check."""
        if not os.path.exists(os.path.join(self.root, ".git")) or not shutil.which("git"):
            return
        for commit in self._log("refs/remotes/origin/main..HEAD") or self._log("-1"):
            self._check_commit(*commit)

    def _log(self, which):
        """Hash, parents, title and body of these commits; nothing if git does not know them."""
        command = ["git", "-C", self.root, "log", "--format=%h%x00%P%x00%s%x00%b%x00", which]
        result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace",
                                check=False)
        fields = result.stdout.split("\0") if result.returncode == 0 else []
        return list(zip(*(fields[i::4] for i in range(4))))

    def _check_commit(self, commit, parents, title, body):
        if len(parents.split()) > 1:
            return
        where = f"commit {commit.strip()}"
        if len(title) > TITLE_MAX:
            message = f"a title of {len(title)} characters, at most {TITLE_MAX}"
            self._report(where, 1, "commit", message)
        if all(not line.strip() or TRAILER.match(line) for line in body.split("\n")):
            self._report(where, 1, "commit", "no body: add one that says why")


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--root", default=root, help="the tree to check")
    parser.add_argument("--fix", action="store_true", help="format the C++ sources first")
    arguments = parser.parse_args()

    tidy = Tidy(os.path.abspath(arguments.root))
    if arguments.fix:
        subprocess.run([CLANG_FORMAT, "-i"] + tidy.cxx_paths(), check=True)
        tidy = Tidy(tidy.root)
    tidy.run()
    tidy.check_commits()
    if shutil.which(CLANG_FORMAT):
        tidy.check_format()
    else:
        print(f"tidy: formatting NOT checked: {CLANG_FORMAT} is missing (tools/setup --tests)")
    for violation in sorted(tidy.violations):
        print(f"{violation.path}:{violation.line}: [{violation.rule}] {violation.message}")
    print(f"tidy: {len(tidy.paths)} files, {len(tidy.violations)} violations")
    return 1 if tidy.violations else 0


if __name__ == "__main__":
    sys.exit(main())
