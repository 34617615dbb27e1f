#!/usr/bin/env python3
"""tools/clang_tidy.py BUILD_DIR [--all]: clang-tidy-19 on every source of the library that changed,
or whose headers changed, since it last passed, with those checks of .clang-tidy that find most of
what is found, in a fifth of the time. With --all: every check, also on the tools, bench, verify,
examples and docs/snippets, which are more than half of the time.
"""

import concurrent.futures
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys

CLANG_TIDY = "clang-tidy-19"
LIBRARY = ("base/", "pmem/", "columns/", "mvcc/", "recovery/", "tables/", "engine/", "query/")
PROGRAMS = ("bench/", "verify/", "tools/", "examples/", "docs/snippets/")
QUICK = ("-*,bugprone-argument-comment,bugprone-branch-clone,bugprone-integer-division,"
         "bugprone-macro-parentheses,bugprone-unused-return-value,bugprone-use-after-move,"
         "performance-*,"
         "-performance-enum-size,-performance-avoid-endl,-performance-no-int-to-ptr,"
         "-performance-unnecessary-value-param,"  # three quarters of the time of all of these
         "readability-identifier-naming")
# What nearly every source includes, parsed once for all of them.
COMMON_HEADERS = ("fmt/format.h", "algorithm", "array", "atomic", "chrono", "cstddef", "cstdint",
                  "cstring", "functional", "map", "memory", "mutex", "optional", "span", "string",
                  "string_view", "thread", "unordered_map", "utility", "vector")
COMPILE_ERROR = "[clang-diagnostic-error"
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


class Sources:
    """Files of the tree and what each of them includes."""

    def __init__(self, root):
        self.root = root
        self.content = {}

    def read(self, path):
        if path not in self.content:
            try:
                with open(os.path.join(self.root, path), "rb") as file:
                    self.content[path] = file.read()
            except FileNotFoundError:
                self.content[path] = b""
        return self.content[path]

    def closure(self, path):
        """`path` and everything of ours that it includes, directly or not."""
        found = {path}
        pending = [path]
        while pending:
            for name in INCLUDE.findall(self.read(pending.pop())):
                name = name.decode()
                for candidate in (name, "include/" + name):
                    if candidate not in found and self.read(candidate):
                        found.add(candidate)
                        pending.append(candidate)
        return sorted(found)

    def digest(self, path, command):
        state = hashlib.sha256(command.encode() + self.read(".clang-tidy"))
        for name in self.closure(path):
            state.update(name.encode() + b"\0" + self.read(name) + b"\0")
        return state.hexdigest()


def compiled_together(entries):
    """The sources that one of CMake's sources for several includes: each is checked there, even if
    another target compiles it alone."""
    together = set()
    for entry in entries:
        if "/Unity/" in entry["file"]:
            with open(os.path.join(entry["directory"], entry["file"]), encoding="utf-8") as file:
                together.update(re.findall(r'#include "([^"]+)"', file.read()))
    return together


def is_in(folders, build_dir, path):
    """Of a source, or of one that CMake made to compile several of a folder together."""
    return (os.path.relpath(path, build_dir) if "/Unity/" in path else path).startswith(folders)


def precompiled_headers(build_dir):
    """Options that have COMMON_HEADERS read from one file; none when that cannot be made. For what
    is compiled as -fPIC: all but programs."""
    header = os.path.join(build_dir, "clang_tidy_common.h")
    with open(header, "w", encoding="utf-8") as file:
        file.writelines(f"#include <{name}>\n" for name in COMMON_HEADERS)
    made = header + ".pch"
    command = ["clang++-19", "-x", "c++-header", "-std=c++20", "-O3", "-DNDEBUG", "-DFMT_SHARED",
               "-fPIC", header, "-o", made]
    if not shutil.which(command[0]):
        return []
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        return []
    return ["--extra-arg=-include-pch", f"--extra-arg={made}"]


class Run:
    """Sources that are read as one: most of the time goes into headers that they share. Those of a
    folder of the root that CMake compiles together with others, and of one program, as each program
    has a main(); each other source is alone."""

    def __init__(self, build_dir, entry):
        words = [word for word in shlex.split(entry["command"]) if word != "ccache"][1:]
        self.flags = words[:words.index("-o")]
        self.directory = entry["directory"]
        self.sources = []
        self.digests = []
        self.size = 0
        self.path = None
        if "/Unity/" in entry["file"]:
            folder = os.path.relpath(os.path.dirname(os.path.dirname(entry["file"])), build_dir)
            # Of no program; the archives in tools/peers have a main() each.
            if "-fPIC" in self.flags and not folder.startswith("tools/"):
                folder = folder.split("/")[0]
            flags = hashlib.sha256(" ".join(self.flags).encode()).hexdigest()[:8]
            self.path = os.path.join(build_dir, "clang_tidy",
                                     f"{folder.replace('/', '-')}-{flags}.cxx")

    def add(self, source, digest, size=1):
        self.sources.append(source)
        self.digests.append(digest)
        self.size += size

    def check(self, options, common):
        """Whether there is no finding, and what clang-tidy says."""
        if not self.path or len(self.sources) == 1:
            return self.check_one(self.sources[0], options, common)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(f'#include "{source}"\n' for source in sorted(self.sources))
        passed, output = self.check_one(self.path, options, common)
        if COMPILE_ERROR in output:
            output += ("clang_tidy: these sources are read as one. Names in unnamed namespaces of "
                       "a folder must differ: rename one of them.\n")
        return passed, output

    def check_one(self, path, options, common):
        # The flags are GCC's; and GCC 12's own std::stable_sort uses what it calls deprecated.
        quiet = ["--extra-arg=-Wno-unknown-warning-option",
                 "--extra-arg=-Wno-unused-command-line-argument",
                 "--extra-arg=-Wno-deprecated-declarations"]
        command = [CLANG_TIDY, "--quiet"] + quiet + options
        if "-fPIC" in self.flags:
            command += common
        result = subprocess.run(command + [path, "--"] + self.flags, capture_output=True, text=True,
                                cwd=self.directory, check=False)
        return result.returncode == 0, result.stdout


def main():
    root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    build_dir = os.path.abspath(sys.argv[1])
    is_all = sys.argv[2:] == ["--all"]
    folders = LIBRARY + PROGRAMS if is_all else LIBRARY
    options = [] if is_all else [f"--checks={QUICK}"]
    if not shutil.which(CLANG_TIDY):
        print(f"clang_tidy: {CLANG_TIDY} is missing (tools/setup --tests)")
        return 77
    with open(os.path.join(build_dir, "compile_commands.json"), encoding="utf-8") as file:
        entries = json.load(file)
    passed_dir = os.path.join(build_dir, "clang_tidy_passed")
    os.makedirs(passed_dir, exist_ok=True)

    sources = Sources(root)
    together = compiled_together(entries)
    runs = {}
    digests = set()
    for entry in entries:
        absolute = os.path.join(entry["directory"], entry["file"])
        path = os.path.relpath(absolute, root)
        if absolute not in together and is_in(folders, os.path.relpath(build_dir, root), path):
            digest = sources.digest(path, entry["command"] + "".join(options))
            digests.add(digest)
            if not os.path.exists(os.path.join(passed_dir, digest)):
                run = Run(build_dir, entry)
                runs.setdefault(run.path or path, run).add(os.path.join(root, path), digest,
                                                           len(sources.closure(path)))
    for stale in set(os.listdir(passed_dir)) - digests:
        os.remove(os.path.join(passed_dir, stale))

    failed = 0
    common = precompiled_headers(build_dir) if runs else []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        largest_first = sorted(runs.values(), key=lambda run: -run.size)
        outcomes = pool.map(lambda run: run.check(options, common), largest_first)
        for run, (passed, output) in zip(largest_first, outcomes):
            if passed:
                for digest in run.digests:
                    with open(os.path.join(passed_dir, digest), "w", encoding="utf-8"):
                        pass
            else:
                failed += 1
                print(output, flush=True)
    changed = sum(len(run.sources) for run in runs.values())
    print(f"clang_tidy: {len(digests)} sources, {changed} changed; {len(runs)} runs, "
          f"{failed} with findings")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
