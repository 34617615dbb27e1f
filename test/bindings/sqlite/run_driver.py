#!/usr/bin/env python3
"""The extension of SQLite in a program that loads it.

run_driver.py shell|python|apsw|adbc|jdbc EXTENSION

Exit status 77 and a reason when the driver is missing.
"""

import glob
import os
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
# Where tools/setup --drivers puts them.
DRIVERS = os.path.join(ROOT, ".cache", "drivers")

MAKE = ("CREATE VIRTUAL TABLE temp.sale USING flugs(id INTEGER PRIMARY KEY, item TEXT NOT NULL, "
        "price DECIMAL(18,2), INDEX by_item(item))")
ROWS = [(i, f"item{i % 7}", i / 4) for i in range(1, 1001)]
SUMS = "SELECT item, count(*), sum(price) FROM sale GROUP BY item ORDER BY item"


def expected():
    groups = {}
    for _, item, price in ROWS:
        count, total = groups.get(item, (0, 0.0))
        groups[item] = (count + 1, total + price)
    return [(item, *groups[item]) for item in sorted(groups)]


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIPPED)


def check(found, wanted, what):
    if found != wanted:
        sys.exit(f"{what}: found {found}, expected {wanted}")


def run_shell(extension, pool):
    program = shutil.which("sqlite3") or skip("no sqlite3: package sqlite3")
    values = ", ".join(f"({i}, '{item}', {price})" for i, item, price in ROWS)
    script = [f".load {extension}", f"SELECT flugs_open('{pool}');", f"{MAKE};",
              f"BEGIN; INSERT INTO sale VALUES{values}; COMMIT;",
              "INSERT INTO sale VALUES(1, 'again', 0);", "DELETE FROM sale WHERE id > 1000;",
              "SELECT flugs_merge();", f"{SUMS};"]
    done = subprocess.run([program, ":memory:"], input="\n".join(script), capture_output=True,
                          text=True, check=False, timeout=60)
    lines = [pool, "1000"] + [f"{item}|{count}|{total}" for item, count, total in expected()]
    check(done.stdout.splitlines(), lines, "the shell printed")
    if "already exists: table sale, key primary" not in done.stderr:
        sys.exit(f"no error of the second row 1: {done.stderr}")
    again = subprocess.run([program, ":memory:"], capture_output=True, text=True, check=False,
                           input=f".load {extension}\nSELECT flugs_open('{pool}');\n"
                                 "SELECT count(*) FROM sale;", timeout=60)
    check(again.stdout.splitlines(), [pool, "1000"], "the second shell printed")


def run_dbapi(connection, errors):
    """The same calls for every driver with a connection as in PEP 249."""
    cursor = connection.cursor()
    cursor.execute(MAKE)
    connection.commit()
    cursor.executemany("INSERT INTO sale VALUES(?, ?, ?)", ROWS)
    connection.commit()
    cursor.execute(SUMS)
    check([tuple(row) for row in cursor.fetchall()], expected(), "the sums")
    cursor.execute("DELETE FROM sale WHERE id > ?", (10,))
    connection.rollback()
    cursor.execute("SELECT item, price FROM sale WHERE id = ?", (7,))
    check([tuple(row) for row in cursor.fetchall()], [("item0", 1.75)], "the row 7")
    try:
        cursor.execute("INSERT INTO sale VALUES(1, 'again', 0)")
        sys.exit("a second row 1 was taken")
    except errors as error:
        if "key primary" not in str(error):
            raise
    connection.rollback()


def run_python(extension, pool):
    # The interpreter of this script may have no sqlite3 that loads extensions; Debian's has.
    code = ("import sqlite3, sys; c = sqlite3.connect(':memory:'); c.enable_load_extension(True); "
            "print(sqlite3.sqlite_version)")
    if os.environ.get("FLUGS_DRIVER_CHILD") is None:
        for python in (sys.executable, "/usr/bin/python3"):
            if os.path.exists(python) and subprocess.run(
                    [python, "-c", code], capture_output=True, check=False).returncode == 0:
                command = [python, "-B", os.path.abspath(__file__), "python", extension]
                done = subprocess.run(command,
                                      env={**os.environ, "FLUGS_DRIVER_CHILD": "1"}, check=False)
                sys.exit(done.returncode)
        skip("no Python whose sqlite3 loads extensions")
    import sqlite3
    connection = sqlite3.connect(":memory:", timeout=5)
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    connection.execute("SELECT flugs_open(?)", (pool,))
    run_dbapi(connection, sqlite3.Error)
    other = sqlite3.connect(":memory:")
    other.enable_load_extension(True)
    other.load_extension(extension)
    other.execute("SELECT flugs_open(?)", (pool,))
    other.execute("UPDATE sale SET price = 2 WHERE id = 1")
    connection.execute("UPDATE sale SET price = 3 WHERE id = 2")  # both write at once
    try:
        connection.execute("UPDATE sale SET price = 3 WHERE id = 1")
        sys.exit("two transactions have changed row 1")
    except sqlite3.OperationalError as error:
        check("conflict" in str(error), True, str(error))
    # A commit in the middle of a loop, as programs do it.
    for number, (row,) in enumerate(connection.execute("SELECT id FROM sale WHERE id > 990")):
        connection.execute("UPDATE sale SET price = ? WHERE id = ?", (number, row))
        connection.commit()
    other.commit()
    check(connection.execute("SELECT sum(price) FROM sale WHERE id > 990").fetchone(), (45.0,),
          "the sum")
    connection.close()
    other.close()


def need(module):
    sys.path[:0] = glob.glob(os.path.join(DRIVERS, "python"))
    try:
        return __import__(module, fromlist=["x"])
    except ImportError as error:
        return skip(f"{error}: tools/setup --drivers")


def run_apsw(extension, pool):
    apsw = need("apsw")
    connection = apsw.Connection(":memory:")
    connection.enable_load_extension(True)
    connection.load_extension(extension)
    connection.execute("SELECT flugs_open(?)", (pool,))
    connection.execute(MAKE)
    with connection:
        connection.executemany("INSERT INTO sale VALUES(?, ?, ?)", ROWS)
    check(list(connection.execute(SUMS)), expected(), "the sums")
    try:
        with connection:
            connection.execute("DELETE FROM sale")
            connection.execute("INSERT INTO sale VALUES(1, NULL, 0)")
        sys.exit("NULL was taken")
    except apsw.ConstraintError:
        pass
    check(list(connection.execute("SELECT count(*) FROM sale")), [(1000,)], "the count")
    connection.close()


def run_adbc(extension, pool):
    need("pyarrow")
    driver = need("adbc_driver_sqlite.dbapi")
    with driver.connect(":memory:", autocommit=True) as connection:
        connection.enable_load_extension(True)
        connection.load_extension(extension)
        cursor = connection.cursor()
        cursor.execute("SELECT flugs_open(?)", (pool,))
        cursor.fetchall()
        cursor.execute(MAKE)
        connection.adbc_connection.set_autocommit(False)
        cursor.executemany("INSERT INTO sale VALUES(?, ?, ?)", ROWS)
        connection.commit()
        cursor.execute(SUMS)
        table = cursor.fetch_arrow_table()
        check([tuple(row.values()) for row in table.to_pylist()], expected(), "the sums")
        cursor.close()


JAVA = """
import java.sql.*;
import org.sqlite.SQLiteConfig;

public class Driver {
  public static void main(String[] words) throws Exception {
    SQLiteConfig config = new SQLiteConfig();
    config.enableLoadExtension(true);
    try (Connection c = DriverManager.getConnection("jdbc:sqlite::memory:", config.toProperties());
         Statement s = c.createStatement()) {
      s.execute("SELECT load_extension('" + words[0] + "')");
      s.execute("SELECT flugs_open('" + words[1] + "')");
      s.execute(words[2]);
      c.setAutoCommit(false);
      try (PreparedStatement p = c.prepareStatement("INSERT INTO sale VALUES(?, ?, ?)")) {
        for (int i = 1; i <= 1000; i++) {
          p.setInt(1, i);
          p.setString(2, "item" + i % 7);
          p.setDouble(3, i / 4.0);
          p.addBatch();
        }
        p.executeBatch();
      }
      c.commit();
      try (ResultSet r = s.executeQuery(words[3])) {
        while (r.next())
          System.out.println(r.getString(1) + "|" + r.getInt(2) + "|" + r.getDouble(3));
      }
      c.commit();
    }
  }
}
"""


def run_jdbc(extension, pool):
    java = shutil.which("java") or skip("no Java")
    jars = glob.glob(os.path.join(DRIVERS, "*.jar"))
    if not any("sqlite-jdbc" in jar for jar in jars):
        skip("no sqlite-jdbc: tools/setup --drivers")
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "Driver.java")
        with open(source, "w", encoding="utf-8") as file:
            file.write(JAVA)
        done = subprocess.run([java, "-cp", ":".join(jars), source, extension, pool, MAKE, SUMS],
                              capture_output=True, text=True, check=False, timeout=120)
        check(done.stdout.splitlines(),
              [f"{item}|{count}|{total}" for item, count, total in expected()],
              f"Java printed ({done.stderr})")


def main():
    name, extension = sys.argv[1], os.path.abspath(sys.argv[2])
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="flugs-test-") as folder:
        pool = os.path.join(folder, "shop.pool")
        {"shell": run_shell, "python": run_python, "apsw": run_apsw, "adbc": run_adbc,
         "jdbc": run_jdbc}[name](extension, pool)


if __name__ == "__main__":
    main()
