#!/usr/bin/env python3
"""The shell `flugs sql`: as a script, with statements as arguments, and on a terminal.

tools/tests/test_sql.py FLUGS
"""

import json
import math
import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FLUGS = ""


class WithPool(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.mkdtemp(dir="/dev/shm", prefix="flugs-test-")
        self.addCleanup(shutil.rmtree, self.directory)
        self.pool = os.path.join(self.directory, "shop.pool")
        self.sql("--create", self.pool,
                 "CREATE VIRTUAL TABLE temp.sale USING flugs(id INTEGER PRIMARY KEY, item TEXT, "
                 "price DECIMAL(18,2), mark BLOB)",
                 "INSERT INTO sale VALUES(1, 'pen', 1.2, x'00ff'), (2, 'a \"book\", ü', 18, NULL)")

    def sql(self, *words, text="", status=0):
        done = subprocess.run([FLUGS, "sql", *words], input=text, capture_output=True, text=True,
                              check=False, timeout=60)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done


class Shell(WithPool):
    def test_statements_are_arguments_or_the_input(self):
        statement = "SELECT id, item FROM sale ORDER BY id"
        rows = '1|pen\n2|a "book", ü\n'
        self.assertEqual(self.sql(self.pool, statement).stdout, rows)
        self.assertEqual(self.sql(self.pool, text=statement + ";").stdout, rows)
        self.assertEqual(self.sql(self.pool, text=statement).stdout, rows)
        several = "-- a comment\nSELECT\n  1; SELECT ';'\n;\n\n.mode\nSELECT 3"
        self.assertEqual(self.sql(self.pool, text=several).stdout, "1\n;\nlist\n3\n")

    def test_each_mode_prints_rows_in_its_form(self):
        statement = "SELECT id, item, mark FROM sale ORDER BY id"
        printed = {mode: self.sql("--mode", mode, self.pool, statement).stdout
                   for mode in ("box", "list", "csv", "json", "line")}
        self.assertEqual(printed["box"],
                         "id  item         mark\n--  -----------  -------\n"
                         ' 1  pen          x\'00ff\'\n 2  a "book", ü  NULL\n')
        self.assertEqual(printed["list"], "1|pen|x'00ff'\n2|a \"book\", ü|\n")
        self.assertEqual(printed["csv"],
                         "id,item,mark\n1,pen,x'00ff'\n2,\"a \"\"book\"\", ü\",\n")
        self.assertEqual(printed["json"],
                         '[{"id":1,"item":"pen","mark":"x\'00ff\'"},\n'
                         ' {"id":2,"item":"a \\"book\\", ü","mark":null}]\n')
        self.assertEqual(printed["line"],
                         "id = 1\nitem = pen\nmark = x'00ff'\n\n"
                         'id = 2\nitem = a "book", ü\nmark = NULL\n')
        for mode in printed:
            self.assertEqual(self.sql("--mode", mode, self.pool, "SELECT 1 WHERE 0").stdout,
                             "[]\n" if mode == "json" else "")
            self.assertEqual(self.sql("--mode", mode, self.pool, "DELETE FROM sale").stdout, "")

    def test_json_is_read_by_others(self):
        done = self.sql("--mode", "json", self.pool, "SELECT 1e999 AS a, -1e999 AS b, 1.5 AS c")
        self.assertEqual(json.loads(done.stdout), [{"a": math.inf, "b": -math.inf, "c": 1.5}])
        self.assertNotIn("Inf", done.stdout)

    def test_a_long_statement_is_read_once(self):
        # 300,000 lines, each of which could end a statement: 60 seconds are not enough to look
        # at the whole text again at each line.
        text = "SELECT /*\n" + "a comment;\n" * 300_000 + "*/ 7;\n"
        self.assertEqual(self.sql(self.pool, text=text).stdout, "7\n")

    def test_a_statement_ends_where_sqlite_ends_it(self):
        for text, rows in (("SELECT 'a;\nb' --;\n;\nSELECT 2;\n", "a;\nb\n2\n"),
                           ("SELECT 1 AS \"x;\n\", 2 AS [;\n], 3 AS `;\n`;", "1|2|3\n"),
                           ("SELECT 1; SELECT\n2 /* ; */;\n/* ;\n */\n", "1\n2\n"),
                           ("CREATE TEMP TABLE a(x);\nCREATE TRIGGER b AFTER INSERT ON a BEGIN\n"
                            "SELECT 1;\nSELECT 2;\nEND;\nSELECT 3;\n", "3\n"),
                           (";\n;;\nSELECT 4;", "4\n")):
            self.assertEqual(self.sql(self.pool, text=text).stdout, rows, text)

    def test_a_table_that_would_be_lost_is_refused(self):
        for text in ("CREATE TABLE lost(x);", "CREATE TABLE lost AS SELECT 1;"):
            done = self.sql(self.pool, text=text, status=1)
            self.assertIn("CREATE VIRTUAL TABLE temp.lost USING flugs(...)", done.stderr)
        other = os.path.join(self.directory, "other.db")
        done = self.sql(self.pool, text=f"CREATE TEMP TABLE a(x); ATTACH '{other}' AS other;\n"
                                        "CREATE TABLE other.kept(x); INSERT INTO a VALUES(3);\n"
                                        "INSERT INTO other.kept SELECT x FROM a;\n"
                                        "SELECT x FROM other.kept;\n")
        self.assertEqual(done.stdout, "3\n")

    def test_a_comment_may_stand_before_a_command(self):
        done = self.sql(self.pool, text="-- tables\n/* of\n the pool */\n .tables\nSELECT 1;\n")
        self.assertEqual(done.stdout, "flugs_statistics\nsale\n1\n")

    def test_a_nul_is_refused(self):
        done = self.sql(self.pool, text="SELECT 1;\nSELECT 2\0;\nSELECT 3;\n", status=1)
        self.assertEqual(done.stdout, "1\n")
        self.assertIn("NUL", done.stderr)

    def test_output_that_cannot_be_written_is_a_failure(self):
        for statements in (["SELECT 1"], [".tables"], ["SELECT 1", "DELETE FROM sale"]):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([FLUGS, "sql", self.pool, *statements], stdout=full,
                                      stderr=subprocess.PIPE, check=False, timeout=60)
            self.assertEqual(done.returncode, 1)
            self.assertIn(b"cannot be written", done.stderr)
        self.assertEqual(self.sql(self.pool, "SELECT count(*) FROM sale").stdout, "2\n")

    def test_a_script_ends_at_its_first_failure(self):
        done = self.sql(self.pool, text="SELECT 1;\n\nSELECT\nabsent;\nSELECT 2;\n", status=1)
        self.assertEqual(done.stdout, "1\n")
        self.assertEqual(done.stderr, "flugs: no such column: absent\nflugs: that was line 3\n")
        done = self.sql(self.pool, "INSERT INTO sale(id) VALUES(1)", "SELECT 2", status=1)
        self.assertEqual(done.stdout, "")
        self.assertIn("already exists: table sale, key primary", done.stderr)

    def test_commands_begin_with_a_dot(self):
        self.assertEqual(self.sql(self.pool, ".tables").stdout, "flugs_statistics\nsale\n")
        schema = self.sql(self.pool, ".schema sale").stdout
        self.assertEqual(schema, self.sql(self.pool, ".schema").stdout)
        self.assertEqual(schema, self.sql(self.pool, ".schema SALE").stdout)
        self.assertIn('"price" DECIMAL(18,2)', schema)
        self.sql("--create", self.pool + "2", text=schema)
        self.assertEqual(self.sql(self.pool + "2", ".schema").stdout, schema)
        self.assertIn(".timer", self.sql(self.pool, ".help").stdout)
        self.assertRegex(self.sql(self.pool, ".timer on", "SELECT 1").stdout,
                         r"^1\n1 rows, [\d.]+ ms\n$")
        self.assertEqual(self.sql(self.pool, text=".quit\nSELECT 1;\n").stdout, "")
        for wrong, said in ((".nothing", "no command"), (".mode odd", "there are the modes"),
                            (".timer 5", "on or off"), (".schema nothing", "no table nothing"),
                            (".mode box list", "one argument")):
            self.assertIn(said, self.sql(self.pool, wrong, status=1).stderr)

    def test_a_pool_is_made_only_if_asked_for(self):
        missing = os.path.join(self.directory, "missing.pool")
        done = self.sql(missing, "SELECT 1", status=2)
        self.assertRegex(done.stderr, "not found.*--create makes the pool")
        self.assertFalse(os.path.exists(missing))
        done = self.sql(self.pool, f"SELECT flugs_open('{missing}')", status=1)
        self.assertIn(f"has the pool {self.pool} open", done.stderr)
        self.assertFalse(os.path.exists(missing))
        done = self.sql("--read-only", self.pool, "SELECT count(*) FROM sale", "DELETE FROM sale",
                        status=1)
        self.assertEqual(done.stdout, "2\n")
        self.assertIn("read only", done.stderr)
        self.sql("--read-only", "--create", self.pool, "SELECT 1", status=2)
        # No device here counts its shutdowns: the flag changes nothing.
        done = self.sql("--accept-lost-lines", self.pool, "SELECT count(*) FROM sale")
        self.assertEqual(done.stdout, "2\n")


class Terminal(WithPool):
    """A session of a person: what is typed, and what is seen."""

    def start(self):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([FLUGS, "sql", self.pool], stdin=theirs, stdout=theirs,
                                   stderr=theirs, start_new_session=True,
                                   env={**os.environ, "HOME": self.directory, "TERM": "dumb"})
        os.close(theirs)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, ours

    def read_until(self, ours, wanted):
        seen = ""
        end = time.monotonic() + 30
        while wanted not in seen:
            ready, _, _ = select.select([ours], [], [], max(0, end - time.monotonic()))
            if not ready:
                self.fail(f"no {wanted!r} in {seen!r}")
            seen += os.read(ours, 65536).decode(errors="replace")
        return seen

    def type(self, ours, text):
        os.write(ours, text.encode())

    def test_a_session(self):
        process, ours = self.start()
        self.read_until(ours, "flugs> ")
        self.type(ours, "SELECT id\n")
        self.read_until(ours, "  ...> ")
        self.type(ours, "FROM sale;\n")
        self.assertIn("--", self.read_until(ours, "flugs> "))
        self.type(ours, "SELECT absent;\n")
        self.assertIn("no such column", self.read_until(ours, "flugs> "))
        self.type(ours, ".quit\n")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(ours)
        history = os.path.join(self.directory, ".flugs_sql_history")
        if os.path.exists(history):  # a build with libedit
            with open(history, encoding="utf-8") as file:
                self.assertIn("FROM", file.read())
            self.assertEqual(os.stat(history).st_mode & 0o077, 0)

    def test_an_interrupt_ends_the_statement_and_not_the_shell(self):
        process, ours = self.start()
        self.read_until(ours, "flugs> ")
        self.type(ours, ".mode list\n")
        self.read_until(ours, "flugs> ")
        # Its second row never comes.
        self.type(ours, "WITH RECURSIVE n(i) AS (VALUES(77) UNION ALL SELECT i + 1 FROM n) "
                        "SELECT i * 1001 FROM n WHERE i < 78;\n")
        self.read_until(ours, "77077")
        process.send_signal(signal.SIGINT)
        self.assertIn("interrupted", self.read_until(ours, "interrupted"))
        self.type(ours, "SELECT 6 * 7;\n")
        self.read_until(ours, "42\r\nflugs> ")
        for wait in (0.3, 0.3):  # at the prompt
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            self.read_until(ours, "flugs> ")
        for _ in range(100):  # just when the prompt is there, and the wait for a key is not
            process.send_signal(signal.SIGINT)
            self.read_until(ours, "flugs> ")
        self.type(ours, "SELECT 6 * 7;\n")
        self.read_until(ours, "42\r\nflugs> ")
        self.type(ours, "\x04")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(ours)

    def test_tab_completes_names(self):
        process, ours = self.start()
        self.read_until(ours, "flugs> ")
        self.type(ours, "SELECT max(pri\t) FROM sal\t;\n")
        self.read_until(ours, "18.0")
        self.type(ours, ".quit\n")
        self.assertEqual(process.wait(timeout=30), 0)
        os.close(ours)


if __name__ == "__main__":
    FLUGS = os.path.abspath(sys.argv[1])
    unittest.main(argv=sys.argv[:1] + sys.argv[2:])
