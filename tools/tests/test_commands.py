#!/usr/bin/env python3
"""The commands of the tool `flugs`: how they are grouped and listed, the style of their --help, and
what they print of small pools.

tools/tests/test_commands.py FLUGS
"""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

FLUGS = ""
WIDTH_MAX = 100
GROUPS = {
    "pool": ["info", "stats", "schema", "check", "estimate", "grow", "compact"],
    "bench": ["tatp", "tpcc", "ycsb", "ch", "htap", "scan", "groups", "restart", "merge",
              "growth", "insert", "lookups", "transactions", "streams", "index-cost", "scaling",
              "sql"],
    "prove": ["explore", "crashtest", "kill-loop", "history", "fuzz-pool"],
}
KEPT_FREE = ["import", "export", "backup", "dump"]
PLACEHOLDERS = {"N", "POOL", "BYTES", "FILE", "DIR", "PROGRAM", "NAME", "WORDS", "STATEMENT",
                "READ_NS:WRITE_NS"}
CHOICES = r"[a-z0-9-]+(\|[a-z0-9-]+)+(,\.\.\.)?"


def flugs(*words, status=0):
    done = subprocess.run([FLUGS, *words], capture_output=True, text=True, check=False,
                          stdin=subprocess.DEVNULL)
    if done.returncode != status:
        raise AssertionError(f"{words}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done


def commands():
    found = [("demo",), ("sql",)]
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
            self.assertRegex(text, usage + r"( [A-Z]+)* \[OPTIONS\]\n")
            for option, description in self.descriptions(text):
                self.assertRegex(description, r"^[A-Z]", option)
                self.assertNotRegex(description, r"\.$|\.\)$", option)

    def test_placeholders_are_the_same_for_the_same_thing(self):
        for _, text in self.each():
            for option, _ in self.descriptions(text):
                if not option.startswith("-"):
                    self.assertIn(option, PLACEHOLDERS)
                elif option not in ("-h, --help", "-v, --verbose"):
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


def on_terminal(*words):
    """What the command writes to a terminal as its standard error."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([FLUGS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=theirs) as process:
        os.close(theirs)
        written = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            written += piece
        os.close(ours)
    return process.returncode, written.decode()


class Pools(unittest.TestCase):
    """`flugs pool` on a pool of TATP."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, cls.directory)
        cls.pool = os.path.join(cls.directory, "tatp.pool")
        made = flugs("bench", "tatp", "--pool", cls.pool, "--keep", "--subscribers", "1000",
                     "--users", "1", "--seconds", "0.1", "--ramp-up", "0")
        cls.made = made.stdout

    def json_of(self, *words):
        path = os.path.join(self.directory, "results.json")
        flugs(*words, "--json", path)
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    def test_kept_is_said_of_a_pool_that_is_there_only(self):
        self.assertIn(f"the pool {self.pool} is kept\n", self.made)
        nowhere = os.path.join(self.directory, "missing", "a.pool")
        done = flugs("bench", "tatp", "--pool", nowhere, "--keep", status=2)
        self.assertNotIn("kept", done.stdout + done.stderr)
        done = flugs("bench", "merge", "--rows", "1000")
        self.assertNotIn("kept", done.stdout + done.stderr)

    def test_rows_are_those_that_are_live(self):
        for command in ("info", "stats"):
            tables = {t["name"]: t["rows_live"]
                      for t in self.json_of("pool", command, self.pool)["tables"]}
            self.assertEqual(tables["subscriber"], 1000)
            self.assertRegex(flugs("pool", command, self.pool).stdout,
                             r"(?m)^subscriber +1000 ")

    def test_info_shows_the_space_of_each_table(self):
        found = self.json_of("pool", "info", self.pool)
        self.assertEqual(found["pool_used_bytes"] + found["pool_free_bytes"] +
                         found["pool_overhead_bytes"], found["pool_bytes"])
        tables = {table["name"]: table["space"] for table in found["tables"]}
        for space in tables.values():
            parts = (space[part] for part in (
                "delta_bytes", "main_bytes", "dictionary_bytes", "hint_index_bytes",
                "index_run_bytes", "catalog_bytes", "replaced_bytes"))
            self.assertEqual(sum(parts), space["pool_bytes"])
            estimate = space["dead_bytes_estimate"]
            self.assertLess(estimate["bytes"], space["pool_bytes"])
        self.assertLess(sum(space["pool_bytes"] for space in tables.values()),
                        found["pool_used_bytes"])
        text = flugs("pool", "info", self.pool).stdout
        self.assertRegex(text, r"(?m)^table .* dictionaries +indexes +in all +dead$")
        self.assertRegex(text, r"(?m)^.* free, .* in holes, .* for the pool itself; "
                               r".* in reserve; at most .* left for rows$")

    def test_a_summary_comes_first_and_details_with_v(self):
        for command, detail in (("check", "table subscriber, column s_id"),
                                ("stats", r"(?m)^s_id +int32"),
                                ("info", "CREATE TABLE subscriber")):
            short = flugs("pool", command, self.pool).stdout
            long = flugs("pool", command, self.pool, "-v").stdout
            self.assertNotRegex(short, detail)
            self.assertRegex(long, detail)
            self.assertLessEqual(len(short.splitlines()), 25)
            self.assertTrue(long.startswith(short[:short.index("\n")]))
            for line in short.splitlines()[1:]:
                self.assertLessEqual(len(line), 115)
        self.assertTrue(flugs("pool", "check", self.pool).stdout.startswith("clean: 0 damages"))

    def test_schema_prints_statements_without_changing_the_pool(self):
        with open(self.pool, "rb") as file:
            before = os.fstat(file.fileno()).st_mtime_ns
        text = flugs("pool", "schema", self.pool).stdout
        self.assertEqual(re.findall(r"(?m)^CREATE TABLE (\w+) \($", text),
                         ["subscriber", "access_info", "special_facility", "call_forwarding"])
        self.assertIn("  PRIMARY KEY (s_id, ai_type)\n", text)
        self.assertIn("  CONSTRAINT sub_nbr UNIQUE (sub_nbr)\n", text)
        self.assertIn("  msc_location BIGINT NOT NULL ENCODING DIRECT,\n", text)
        self.assertEqual(text, self.json_of("pool", "schema", self.pool)["text"])
        self.assertEqual(os.stat(self.pool).st_mtime_ns, before)

    def test_a_pool_in_use_has_a_header(self):
        with subprocess.Popen([FLUGS, "bench", "transactions", "--pool", self.pool + ".used",
                               "--rounds", "1000"], stdout=subprocess.DEVNULL) as user:
            try:
                found = None
                while found is None and user.poll() is None:
                    try:
                        found = self.json_of("pool", "info", self.pool + ".used")
                    except AssertionError:  # not there yet
                        pass
            finally:
                user.terminate()
        self.assertFalse(found["opened"])
        self.assertTrue(found["open_for_writing"])
        self.assertEqual(found["format_version"], 13)
        self.assertGreater(found["pool_bytes"], 0)
        self.assertIsNone(found["tables"])

    def test_a_pool_gets_a_larger_size_and_no_smaller_one(self):
        pool = os.path.join(self.directory, "grown.pool")
        subprocess.run(["cp", "--sparse=always", self.pool, pool], check=True)
        grown = self.json_of("pool", "grow", pool, "128GiB")
        self.assertEqual(grown["pool_reserved_bytes_before"], 64 << 30)
        self.assertEqual(grown["pool_reserved_bytes"], 128 << 30)
        self.assertIn("can grow to 128 GB", flugs("pool", "info", pool).stdout)
        flugs("pool", "check", pool)
        refused = flugs("pool", "grow", pool, "8GiB", status=2).stderr
        self.assertIn(str(8 << 30), refused)
        self.assertIn(str(128 << 30), refused)
        os.remove(pool)

    def test_a_compacted_pool_takes_less_and_is_whole(self):
        pool = os.path.join(self.directory, "compacted.pool")
        subprocess.run(["cp", "--sparse=always", self.pool, pool], check=True)
        compacted = self.json_of("pool", "compact", pool)
        self.assertLess(compacted["medium_bytes"], compacted["medium_bytes_before"] + (64 << 20))
        self.assertEqual(compacted["medium_bytes"], os.stat(pool).st_blocks * 512)
        flugs("pool", "check", pool)
        os.remove(pool)

    def test_a_pool_that_must_not_be_written_is_read(self):
        if os.geteuid() == 0 and shutil.which("setpriv") is None:
            self.skipTest("root may write everything")
        prefix = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
        os.chmod(self.directory, 0o755)
        os.chmod(self.pool, 0o444)
        try:
            done = subprocess.run([*prefix, FLUGS, "pool", "info", self.pool], check=True,
                                  capture_output=True, text=True)
            self.assertIn("medium read-only", done.stdout)
            self.assertIn("left for rows", done.stdout)
            self.assertRegex(done.stdout, r"(?m)^subscriber +")
            done = subprocess.run([*prefix, FLUGS, "pool", "stats", self.pool], check=True,
                                  capture_output=True, text=True)
            self.assertIn("subscriber", done.stdout)
        finally:
            os.chmod(self.pool, 0o600)


class Libraries(unittest.TestCase):
    def test_none_is_looked_for_in_the_working_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            looked = subprocess.run([os.path.abspath(FLUGS), "--version"], capture_output=True,
                                    text=True, check=True, cwd=folder,
                                    env={**os.environ, "LD_DEBUG": "libs"}).stderr
        tried = re.findall(r"trying file=(.*)", looked)
        self.assertTrue(any("libstdc++" in name for name in tried), looked)
        self.assertEqual([name for name in tried if not name.startswith("/")], [])


class Engines(unittest.TestCase):
    def test_a_program_that_is_missing_is_told_before_the_run(self):
        with tempfile.TemporaryDirectory() as directory:
            alone = shutil.copy(FLUGS, directory)
            for words in (["tpcc", "--peers", "lmdb"], ["ycsb", "--peers", "lmdb"],
                          ["ycsb", "--peers", "rocksdb"], ["ycsb", "--peers", "all"]):
                done = subprocess.run([alone, "bench", *words, "--seconds", "3600"], timeout=20,
                                      capture_output=True, text=True, check=False)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("was not built: its library was not there", done.stderr)


class Printed(unittest.TestCase):
    def test_explore_lists_protocols_with_work_unless_all_are_asked_for(self):
        short = flugs("prove", "explore", "--states", "1000").stdout
        table = short[:short.index("\nall ")]
        self.assertNotRegex(table, r"(?m) 0 +0 +0 +0$")
        self.assertRegex(short, r"(?m)^\d+ protocols without a state are left out")
        whole = flugs("prove", "explore", "--states", "1000", "--all").stdout
        self.assertGreater(len(whole.splitlines()), len(short.splitlines()) + 20)

    def test_htap_runs_each_pair_of_users_and_streams(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "htap.json")
            printed = flugs("bench", "htap", "--warehouses", "1", "--customers", "100", "--items",
                            "500", "--users", "1", "--streams", "1", "--seconds", "0.2",
                            "--ramp-up", "0", "--json", path).stdout
            with open(path, encoding="utf-8") as file:
                made = json.load(file)
        self.assertEqual([(point["users"], point["streams"]) for point in made["points"]],
                         [(0, 1), (1, 0), (1, 1)])
        self.assertEqual(sorted(point["order"] for point in made["points"]), [1, 2, 3])
        self.assertEqual(made["problems"], [])
        self.assertEqual(made["points"][2]["freshness"]["not_fresh_share"], 0)
        self.assertEqual(len(made["ratios"]), 1)
        self.assertGreater(made["frontier"]["area"], 0)
        self.assertIn("all held", printed)
        for line in printed.splitlines():
            self.assertLessEqual(len(line), 115)

    def test_text_stands_to_the_left(self):
        protocols = flugs("prove", "explore", "--list").stdout.splitlines()
        self.assertEqual(protocols[0].index("what happens"), protocols[2].index("rows inserted"))

    def test_bars_tell_the_time_left(self):
        status, written = on_terminal("bench", "tatp", "--subscribers", "1000", "--seconds", "1.5",
                                      "--ramp-up", "0", "--no-check")
        self.assertEqual(status, 0)
        self.assertRegex(written, r"running +\[#+\.+\] +\d+ %  \d s left")

    def test_bars_tell_the_rate(self):
        status, written = on_terminal("prove", "explore", "--states", "5000", "--processes", "1")
        self.assertEqual(status, 0)
        self.assertRegex(written, r"exploring +\[.*\] +\d+ %  [\d.]+( k)? states/s, \d+ s left")

    def test_nothing_measured_is_a_hyphen(self):
        printed = flugs("bench", "transactions", "--rows", "1", "--seconds", "0.01",
                        "--rounds", "1", "--idle-seconds", "0.01", "--long-runs", "1",
                        "--long-rows", "10").stdout
        self.assertNotIn(" 0 ns", printed)
        self.assertRegex(printed, r"(?m)^p99 +[\d.]+ \w+ +(-|[\d.]+ \w+) ")


if __name__ == "__main__":
    FLUGS = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
