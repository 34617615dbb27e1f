"""The parts of tools/nightly: what each runs, and how much of it in a night."""

import glob
import os
import sys

from nightly_run import Step

ROOT = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

STATES_PER_STEP = 5_000_000
# Rounds of a protocol that a step may use up before the next one's begin. Each has 20,000 states
# at most, of which few protocols find fewer than 200.
ROUNDS_PER_STEP = 100_000
INPUTS_PER_STEP = 100_000
ROUNDS_OF_KILLS_PER_STEP = 500
KILLS_PER_STEP = 250  # of a virtual machine
CASES_PER_STEP = 100
OPERATIONS_PER_STEP = 50_000_000
OPERATIONS_PER_KILL = 25_000
MODEL_OPERATIONS_PER_STEP = 10_000_000
# Is there if PyPI could be reached: see tools/python.
PYTHON = os.path.join(ROOT, ".cache", "python", "bin", "python")
# The same for the interpreter without the GIL.
PYTHON_FREE = os.path.join(ROOT, ".cache", "free-threaded", "python", "bin", "python")
HARNESSES = ("schema_codec", "cells", "persistent_pointers", "command_line")


class Programs:
    """Where the programs of each preset are."""

    PRESETS = ("release", "libfuzzer", "scm", "asan", "free-threaded", "dev")

    def __init__(self, release, libfuzzer, scm, asan, free_threaded, dev):
        self.release = release
        self.libfuzzer = libfuzzer
        self.scm = scm
        self.asan = asan
        self.free_threaded = free_threaded
        self.dev = dev

    def flugs(self, *arguments):
        return [os.path.join(self.release, "tools", "flugs"), *arguments]

    def test(self, folder):
        return os.path.join(self.release, "test", folder, f"flugs_{os.path.basename(folder)}_test")


def slices(total, size):
    """(number of the slice, first, how many)"""
    return [(i, first, min(size, total - first))
            for i, first in enumerate(range(0, total, size))]


class Part:
    """`size` at scale 1, and the least that can be run. `setup`: an option of tools/setup that
    brings what the part needs besides. `needs`: a file without which the part is skipped."""

    def __init__(self, name, what, size, unit, steps, targets, preset="release", size_min=1,
                 setup=None, needs=None):
        self.name = name
        self.what = what
        self.targets = targets
        self.preset = preset
        self.setup = setup
        self.needs = needs
        self._size = size
        self._size_min = size_min
        self._unit = unit
        self._steps = steps

    def size(self, scale):
        return max(self._size_min, round(self._size * scale))

    def can_run(self):
        return self.needs is None or os.path.exists(self.needs)

    def describe(self, scale):
        return f"{self.size(scale):>11,} {self._unit:15}  {self.what}"

    def steps(self, programs, scale, seed):
        return self._steps(programs, self.size(scale), seed)


def explore(programs, states, seed):
    steps = []
    for i, _, size in slices(states, STATES_PER_STEP):
        command = programs.flugs("prove", "explore", "--protocol", "all",
                                 "--states", str(max(size, 1000)), "--sites", "--seed", str(seed),
                                 "--first-round", str(i * ROUNDS_PER_STEP))
        figures = ["states", "failures"]
        if i == 0:
            command.append("--mutations")
            figures += ["mutations_total", "mutations_caught", "mutations_removable"]
        steps.append(Step(str(i), command, figures=figures))
    return steps


def crashtest(programs, states, seed):
    plugin = os.path.join(programs.release, "examples", "libexample_crash_workload.so")
    command = programs.flugs("prove", "crashtest", plugin, "--states", str(states),
                             "--seed", str(seed))
    return [Step("0", command, figures=("states", "failures"), programs=(command[0], plugin))]


def kills(workload):
    def steps(programs, rounds, seed):
        return [Step(str(i), programs.flugs("prove", "kill-loop", "--workload", workload,
                                            "--rounds", str(size), "--seed", str(seed + i)),
                     figures=("rounds", "lost_acknowledged", "failures"))
                for i, _, size in slices(rounds, ROUNDS_OF_KILLS_PER_STEP)]
    return steps


def kills_on_full_medium(programs, rounds, seed):
    alone = os.path.join(ROOT, "tools", "small-tmpfs")
    command = programs.flugs("prove", "kill-loop", "--workload", "random", "--pool", "pool",
                             "--fill-medium", "--rounds", str(rounds), "--seed", str(seed))
    return [Step("0", [alone, "160m", *command], programs=(alone, command[0]),
                 figures=("rounds", "lost_acknowledged", "fills_of_medium", "refused_steps",
                          "failures"))]


def python_package(build):
    """The folder for PYTHONPATH, and the modules in C++."""
    package = os.path.join(build, "bindings", "python")
    return package, [os.path.join(package, "flugs", name)
                     for name in sorted(os.listdir(os.path.join(package, "flugs")))
                     if name.endswith(".so")]


def kill_python(programs, kills, seed):
    script = os.path.join(ROOT, "bindings", "python", "tests", "kill_inserts.py")
    package, modules = python_package(programs.release)
    return [Step(str(i), [PYTHON, "-B", script, "--kills", str(size), "--seed", str(seed + i)],
                 {"PYTHONPATH": package},
                 figures=("kills", "acknowledged", "lost_acknowledged", "kills_in_arrow",
                          "kills_in_opening"),
                 programs=(script, *modules))
            for i, _, size in slices(kills, ROUNDS_OF_KILLS_PER_STEP)]


def free_threaded(programs, runs, seed):
    """Threads meet elsewhere in each run. PYTHONHASHSEED tells the runs apart."""
    tests = os.path.join(ROOT, "bindings", "python", "tests")
    package, modules = python_package(programs.free_threaded)
    sources = (glob.glob(os.path.join(tests, "*.py")) +
               glob.glob(os.path.join(ROOT, "bindings", "python", "flugs", "*.py")))
    return [Step(str(i), [PYTHON_FREE, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
                          tests],
                 {"PYTHONPATH": package, "PYTHONHASHSEED": str(seed + i)},
                 printed={"tests": r"(\d+) passed", "skipped": r"(\d+) skipped",
                          "failures": r"(\d+) failed"},
                 programs=(*modules, *sorted(sources)))
            for i in range(runs)]


def wheel(programs, _, __):
    tool = os.path.join(ROOT, "tools", "python")
    out = os.path.join(programs.release, "wheel")
    command = 'rm -rf "$2" && "$1" --wheel "$2" && "$1" --try "$2"/*.whl'
    return [Step("0", ["sh", "-c", command, "sh", tool, out],
                 programs=(tool, programs.flugs()[0]), may_skip=True)]


def full_pool(programs, cases, seed):
    """As many cases of tables of numbers as of any tables."""
    return [Step(str(i), [programs.test("space")],
                 {"FLUGS_SEED": str(seed + first), "FLUGS_CASES": str(size)},
                 printed={"cases": r"(\d+) cases from", "rows": r"(\d+) rows deleted",
                          "rows_left_out": r"(\d+) of them did not", "failures": r"(\d+) failed"})
            for i, first, size in slices((cases + 1) // 2, CASES_PER_STEP)]


def history(programs, operations, seed):
    """Every second step with kills; each level, workload and kind of index in turn; users who
    interleave transactions, and more users than processors, so that they are held up anywhere."""
    steps = []
    for i, first, size in slices(operations, OPERATIONS_PER_STEP):
        kills = max(1, size // OPERATIONS_PER_KILL) if i % 2 == 1 else 0
        steps.append(Step(str(i), programs.flugs(
            "prove", "history", "--operations", str(max(size, 1000)), "--kills", str(kills),
            "--isolation", ("snapshot", "serializable", "snapshot", "read-committed")[i // 2 % 4],
            "--workload", ("mixed", "list-append", "register")[i // 2 % 3],
            "--index", ("dram", "pool")[i // 4 % 2],
            *(("--users", "4", "--sessions", "3"),
              ("--users", "16", "--sessions", "1"))[i // 2 % 2],
            "--seed", str(seed + first // 1000)),
            figures=("operations", "transactions", "anomalies", "kills", "broken_rules_caught",
                     "broken_rules_total")))
    return steps


def fuzz_pool(programs, inputs, seed):
    return [Step(str(i), programs.flugs("prove", "fuzz-pool", "--inputs", str(size),
                                        "--seed", str(seed), "--first", str(first)),
                 figures=("inputs", "refused", "answered", "crashed", "hung",
                          "undetected_under_checksum"))
            for i, first, size in slices(inputs, INPUTS_PER_STEP)]


def libfuzzer(programs, seconds, seed):
    return [Step(name, [os.path.join(programs.libfuzzer, "harness", f"flugs_fuzz_{name}"),
                        f"-max_total_time={seconds}", "-rss_limit_mb=2048", "-timeout=10",
                        f"-seed={seed + 1}", "-close_fd_mask=1"],
                 printed={"inputs": r"(?m)^Done (\d+) runs in"})
            for name in HARNESSES]


def model(programs, operations, seed):
    """Each step has tables of its own, in databases with either kind of index."""
    return [Step(str(i), [programs.test("model")],
                 {"FLUGS_SEED": str(seed + i), "FLUGS_OPERATIONS": str(max(size, 1000))},
                 printed={"operations": r"(\d+) steps in", "schemas": r"steps in (\d+) schemas",
                          "failures": r"(\d+) failed"})
            for i, _, size in slices(operations, MODEL_OPERATIONS_PER_STEP)]


def crash_tests(folder, pattern):
    def steps(programs, factor, _):
        return [Step("0", [programs.test(folder), *pattern], {"FLUGS_CRASH_STATES": str(factor)},
                     printed={"states": r"crash points, (\d+) states",
                              "failures": r"(\d+) failed"})]
    return steps


def journal(programs, factor, seed):
    """Scripts have numbers; each seed has its own."""
    return [Step("0", [programs.test("journal")],
                 {"FLUGS_CRASH_STATES": str(factor), "FLUGS_SEED": str(1 + seed * 1_000_000)},
                 printed={"states": r"scripts, (\d+) states", "failures": r"(\d+) failed"})]


def dax_vm(programs, images, seed):
    tool = os.path.join(ROOT, "tools", "dax-vm")
    return [Step("0", [tool, "--images", str(images), "--kills", str(max(4, images // 40)),
                       "--creations", str(max(8, images // 25)), "--seed", str(seed),
                       "--build", programs.release],
                 figures=("images", "kills", "lost_acknowledged"),
                 programs=(tool, programs.flugs()[0]))]


def disk_vm(programs, kills, seed):
    tool = os.path.join(ROOT, "tools", "disk-vm")
    return [Step(str(i), [tool, "--kills", str(size), "--images", str(2 * size),
                          "--creations", str(max(8, size * 2 // 5)), "--seed", str(seed + i),
                          "--build", programs.release],
                 figures=("kills", "images", "audited_transactions", "lost_acknowledged"),
                 programs=(tool, programs.flugs()[0]))
            for i, _, size in slices(kills, KILLS_PER_STEP)]


def lint(programs, _, __):
    tool = os.path.join(ROOT, "tools", "clang_tidy.py")
    return [Step("0", [sys.executable, "-B", tool, programs.release, "--all"],
                 programs=(tool, programs.flugs()[0]))]


def languages(programs, _, __):
    tool = os.path.join(ROOT, "test", "bindings", "c", "run_example.py")
    library = os.path.join(programs.release, "bindings", "c")
    return [Step(language, [sys.executable, "-B", tool, language, library,
                            os.path.join(programs.release, "test", "bindings", "c", language)],
                 programs=(tool, os.path.join(library, "libflugs_c.so")))
            for language in ("rust", "go")]


def duckdb(programs, transactions, _):
    """The queries of TPC-H and CH-benCHmark in full size; so many transactions a second write."""
    tool = os.path.join(ROOT, "tools", "bench-duckdb")
    package = os.path.join(programs.release, "bindings", "python", "flugs")
    extension = os.path.join(package, "flugs.duckdb_extension")
    modules = [os.path.join(package, name) for name in sorted(os.listdir(package))
               if name.endswith(".so")] if os.path.exists(extension) else []
    return [Step(workload, [tool, workload, "--writes", str(transactions), "--build",
                            programs.release],
                 figures=("queries_equal", "transactions", f"{workload}_ratio"),
                 programs=(tool, *modules), may_skip=True)
            for workload in ("rows", "tpch", "ch")]


def drivers(programs, _, __):
    tool = os.path.join(ROOT, "test", "bindings", "sqlite", "run_driver.py")
    extension = os.path.join(programs.release, "bindings", "sqlite", "flugs_sqlite.so")
    return [Step(driver, [sys.executable, "-B", tool, driver, extension],
                 programs=(tool, extension), may_skip=True)
            for driver in ("shell", "python", "apsw", "adbc", "jdbc")]


def all_tests(build, command, *programs):
    """Where a test says that it cannot run, that is no failure."""
    all_programs = sorted(glob.glob(os.path.join(build, "test", "**", "flugs_*_test"),
                                    recursive=True))
    return [Step("0", command, programs=(*programs, *all_programs),
                 printed={"tests": r"tests passed, \d+ tests failed out of (\d+)",
                          "failures": r"tests passed, (\d+) tests failed"})]


def tests(programs, _, __):
    command = ["ctest", "--test-dir", programs.release, "--output-on-failure", "--no-tests=error",
               "-j", str(os.cpu_count())]
    return all_tests(programs.release, command, programs.flugs()[0])


def asan(programs, _, __):
    """A plain tools/test leaves out tests that other builds run in a fraction of the time."""
    tool = os.path.join(ROOT, "tools", "test")
    return all_tests(programs.asan, [tool, "--preset", "asan"], tool)


def dev(programs, _, __):
    """No other build compiles each source alone: a missing include shows only here."""
    tool = os.path.join(ROOT, "tools", "test")
    return all_tests(programs.dev, [tool, "--quick"], tool)


def scm(programs, _, __):
    return [Step("0", [os.path.join(programs.scm, "test", "scm", "flugs_scm_test")])]


PARTS = (
    Part("tests", "all tests in the release build, the mutants of the journal too", 1, "run",
         tests, ("all",), setup="--machines"),
    Part("asan", "all tests under the address sanitizer, also the benchmarks' and stress tests", 1,
         "run", asan,
         ("tests_fast", "tests_crash", "tests_concurrency", "tests_asan_night"), preset="asan"),
    Part("dev", "each source compiled alone, and the fast tests", 1, "run", dev, ("all",),
         preset="dev"),
    Part("lint", "every check of .clang-tidy, on the tools and examples too", 1, "run", lint,
         ("flugs_tool",)),
    Part("languages", "programs of other languages with the C ABI", 1, "run", languages,
         ("flugs_c",), setup="--languages"),
    Part("drivers", "the extension of SQLite in programs that load it", 1, "run", drivers,
         ("flugs_sqlite_extension",), setup="--drivers"),
    Part("scm", "reads of emulated SCM, charged against seen by the processor; optimised code", 1,
         "run", scm, ("tests_scm",), preset="scm"),
    Part("explore", "crash states of every protocol, every mutation, waste by site",
         50_000_000, "states", explore, ("flugs_tool",), size_min=1000),
    Part("crashtest", "crash states of the example of a user's workload",
         1_000_000, "states", crashtest, ("flugs_tool", "example_crash_workload"), size_min=1000),
    Part("kill_tatp", "TATP, killed", 2_000, "kills", kills("tatp"), ("flugs_tool",)),
    Part("kill_tpcc", "TPC-C, killed, also while it is being opened", 2_000, "rounds",
         kills("tpcc"), ("flugs_tool",)),
    Part("kill_random", "random tables, definitions and transactions, killed",
         2_000, "kills", kills("random"), ("flugs_tool",)),
    Part("kill_full_medium", "the same on a file system that is filled, and freed again",
         500, "kills", kills_on_full_medium, ("flugs_tool",)),
    Part("kill_python", "inserts and openings in Python, killed", 10_000, "kills", kill_python,
         ("flugs_python",), needs=PYTHON),
    Part("free_threaded", "the tests of the Python module on CPython without the GIL", 5, "runs",
         free_threaded, ("flugs_python",), preset="free-threaded", setup="--free-threaded",
         needs=PYTHON_FREE),
    Part("duckdb", "queries by DuckDB over live pools, equal to those on its own tables",
         1000, "commits/s", duckdb, ("flugs_tool", "flugs_python"), needs=PYTHON),
    Part("wheel", "a wheel of the Python module, installed where no library of PMDK is", 1, "run",
         wheel, ("flugs_tool",)),
    Part("full_pool", "pools that are filled, emptied and filled again",
         1_000, "cases", full_pool, ("flugs_space_test",)),
    Part("history", "random transactions, recorded and checked for their isolation level",
         1_000_000_000, "operations", history, ("flugs_tool",), size_min=1000),
    Part("fuzz_pool", "damaged pools", 1_000_000, "inputs", fuzz_pool, ("flugs_tool",)),
    Part("libfuzzer", "harnesses under the address sanitizer, each for this time",
         900, "seconds", libfuzzer, ("fuzz_harnesses",), preset="libfuzzer"),
    Part("model", "random operations on random tables against a model",
         50_000_000, "operations", model,
         ("flugs_model_test",), size_min=1000),
    Part("crash", "the crash tests, with a multiple of their states", 20, "times",
         crash_tests("verify/crash", ()), ("flugs_crash_test",)),
    Part("journal", "crash states of the journal alone, a multiple of the test's", 34, "times",
         journal, ("flugs_journal_test",)),
    Part("power_cut", "power cuts on files, with a multiple of their steps", 100, "times",
         crash_tests("faults", ("power cuts on a file*",)), ("flugs_faults_test",)),
    Part("dax_vm", "crash images on real DAX, in a virtual machine", 2_000, "images", dax_vm,
         ("flugs_tool", "flugs_pmem_test", "flugs_engine_test", "flugs_model_test"), size_min=4,
         setup="--machines"),
    Part("disk_vm", "power cuts of a virtual machine with a disk", 1_000, "kills", disk_vm,
         ("flugs_tool",), size_min=4, setup="--machines"),
)


def names_of_parts():
    return [part.name for part in PARTS]
