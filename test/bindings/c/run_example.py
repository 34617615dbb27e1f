#!/usr/bin/env python3
"""Compiles and runs a program of bindings/c/examples against a build's libflugs_c.so.

run_example.py rust|go LIBRARY_FOLDER WORK_FOLDER

Exit status: 0 it printed what it should, 1 it did not, 77 there is no compiler of the language.
"""

import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))
EXAMPLES = os.path.join(ROOT, "bindings", "c", "examples")
EXPECTED = """\
found item 42
missing: not found
scanned 500 rows, sum 375250
"""
MISSING = 77
# Where the languages' own installers put them, which a test's PATH need not have.
PLACES = (os.path.expanduser("~/.cargo/bin"), "/usr/local/go/bin")


def compiler(name):
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(PLACES))


def build_rust(library, work):
    program = os.path.join(work, "shop_rust")
    subprocess.run([compiler("rustc"), "--edition", "2021", "-D", "warnings", "-L", library,
                    "-o", program, os.path.join(EXAMPLES, "shop.rs")], check=True)
    return program


def build_go(library, work):
    program = os.path.join(work, "shop_go")
    environment = dict(os.environ, CGO_ENABLED="1", GOFLAGS="-buildvcs=false",
                       CGO_CFLAGS="-I" + os.path.join(ROOT, "include"),
                       CGO_LDFLAGS="-L" + library)
    environment.setdefault("GOCACHE", os.path.join(work, "go_cache"))
    subprocess.run([compiler("go"), "build", "-o", program, os.path.join(EXAMPLES, "shop.go")],
                   env=environment, check=True)
    return program


LANGUAGES = {"rust": ("rustc", build_rust), "go": ("go", build_go)}


def main(language, library, work):
    name, build = LANGUAGES[language]
    if compiler(name) is None:
        print(f"{name} is missing: tools/setup --languages")
        return MISSING
    os.makedirs(work, exist_ok=True)
    program = build(os.path.abspath(library), os.path.abspath(work))
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([program, os.path.join(folder, "shop.pool")], check=False,
                              stdout=subprocess.PIPE, text=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=library))
    if done.returncode != 0 or done.stdout != EXPECTED:
        print(f"exit status {done.returncode}, printed\n{done.stdout}instead of\n{EXPECTED}")
        return 1
    print(done.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
