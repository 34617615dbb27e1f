#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

namespace {

std::string open_again(const TemporaryPath& path) {
  return "SELECT flugs_open('" + path.string() + "')";
}

/// The message of a statement that fails.
std::string failure(Connection& connection, const std::string& sql) {
  return connection.run(sql) == SQLITE_OK ? "done" : connection.message();
}

}  // namespace

TEST_CASE("a table of another schema acts on its own pool only") {
  const TemporaryPath one;
  const TemporaryPath two;
  Connection own(one.string());
  REQUIRE(own.run("CREATE VIRTUAL TABLE main.x USING flugs(k INTEGER PRIMARY KEY, s TEXT)") ==
          SQLITE_OK);
  REQUIRE(own.run("INSERT INTO x VALUES(1, 'one')") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_close()") == SQLITE_OK);
  using Catch::Contains;
  CHECK_THAT(failure(own, "SELECT * FROM main.x"), Contains("no pool is open"));
  REQUIRE(own.run("SELECT flugs_open('" + two.string() + "')") == SQLITE_OK);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.other USING flugs(k INTEGER PRIMARY KEY, s TEXT)") ==
          SQLITE_OK);
  REQUIRE(own.run("INSERT INTO other VALUES(1, 'two')") == SQLITE_OK);
  for (const char* sql :
       {"SELECT * FROM main.x", "SELECT * FROM main.x WHERE k = 1", "DELETE FROM main.x",
        "UPDATE main.x SET s = 'wrong' WHERE k = 1", "INSERT INTO main.x VALUES(2, 'wrong')",
        "ALTER TABLE main.x RENAME TO y"}) {
    INFO(sql);
    CHECK_THAT(failure(own, sql), Contains("another one is open"));
  }
  CHECK(own.rows("SELECT k, s FROM other") == std::vector<std::string>{"1", "two"});
  SECTION("the first pool is opened again") {
    REQUIRE(own.run("SELECT flugs_close()") == SQLITE_OK);
    REQUIRE(own.run("SELECT flugs_open('" + one.string() + "')") == SQLITE_OK);
    REQUIRE(own.run("UPDATE main.x SET s = s || '!' WHERE k = 1") == SQLITE_OK);
    CHECK(own.rows("SELECT k, s FROM temp.x") == std::vector<std::string>{"1", "one!"});
  }
  SECTION("the table is dropped in SQLite, and stays in its pool") {
    REQUIRE(own.run("DROP TABLE main.x") == SQLITE_OK);
    CHECK(own.value("SELECT count(*) FROM other") == "1");
    REQUIRE(own.run("SELECT flugs_close()") == SQLITE_OK);
    REQUIRE(own.run("SELECT flugs_open('" + one.string() + "')") == SQLITE_OK);
    CHECK(own.value("SELECT s FROM x") == "one");
  }
}

TEST_CASE("a table of another pool in memory is another one") {
  Connection own(":memory:");
  const char* make = "CREATE VIRTUAL TABLE main.x USING flugs(k INTEGER PRIMARY KEY)";
  REQUIRE(own.run(make) == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_close(); SELECT flugs_open(':memory:')") == SQLITE_OK);
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.x USING flugs(k INTEGER PRIMARY KEY)") == SQLITE_OK);
  CHECK_THAT(failure(own, "INSERT INTO main.x VALUES(1)"), Catch::Contains("another one is open"));
  CHECK(own.value("SELECT count(*) FROM temp.x") == "0");
}

TEST_CASE("names of tables that another connection exchanges are not mixed up") {
  const TemporaryPath path;
  Connection first(path.string());
  for (const char* name : {"ra", "rb"}) {
    const std::string table = name;
    REQUIRE(first.run("CREATE VIRTUAL TABLE temp." + table +
                      " USING flugs(k INTEGER PRIMARY KEY, s TEXT)") == SQLITE_OK);
    REQUIRE(first.run("INSERT INTO " + table + " VALUES(1, '" + table + "1'), (2, '" + table +
                      "2')") == SQLITE_OK);
  }
  Connection second(path.string());
  CHECK(second.value("SELECT s FROM ra WHERE k = 1") == "ra1");
  REQUIRE(first.run("ALTER TABLE ra RENAME TO tmp; ALTER TABLE rb RENAME TO ra; "
                    "ALTER TABLE tmp RENAME TO rb") == SQLITE_OK);
  for (const char* sql :
       {"SELECT s FROM ra", "SELECT s FROM ra WHERE k = 1", "DELETE FROM ra WHERE s = 'ra2'",
        "DELETE FROM ra", "INSERT INTO ra VALUES(3, 'x')", "ALTER TABLE ra RENAME TO rc",
        "BEGIN; UPDATE ra SET s = 'x' WHERE k = 1"}) {
    INFO(sql);
    CHECK_THAT(failure(second, sql), Catch::Contains("definition of ra has changed"));
  }
  REQUIRE(second.run("ROLLBACK") == SQLITE_OK);
  CHECK(second.run("DROP TABLE ra") != SQLITE_OK);
  REQUIRE(second.run(open_again(path)) == SQLITE_OK);
  CHECK(second.rows("SELECT s FROM ra ORDER BY k") == std::vector<std::string>{"rb1", "rb2"});
  CHECK(second.value("SELECT s FROM ra WHERE k = 1") == "rb1");
  REQUIRE(second.run("DELETE FROM ra WHERE s = 'rb2'") == SQLITE_OK);
  CHECK(first.value("SELECT count(*) FROM ra") == "1");
  CHECK(first.value("SELECT count(*) FROM rb") == "2");
}

TEST_CASE("columns that another connection changes are not mixed up") {
  const TemporaryPath path;
  Connection first(path.string());
  REQUIRE(first.run("CREATE VIRTUAL TABLE temp.t USING flugs(k INTEGER PRIMARY KEY, x INTEGER, "
                    "y INTEGER)") == SQLITE_OK);
  REQUIRE(first.run("INSERT INTO t VALUES(1, 10, 20)") == SQLITE_OK);
  Connection second(path.string());
  const auto refused = [&](const char* change) {
    REQUIRE(first.run(change) == SQLITE_OK);
    for (const char* sql : {"SELECT * FROM t", "SELECT * FROM t WHERE k = 1",
                            "UPDATE t SET k = 99 WHERE k = 1", "INSERT INTO t(k) VALUES(5)"}) {
      INFO(change << ": " << sql);
      CHECK_THAT(failure(second, sql), Catch::Contains("definition of t has changed"));
    }
    REQUIRE(second.run(open_again(path)) == SQLITE_OK);
  };
  refused(
      "SELECT flugs_rename_column('t', 'x', 'tmp'), flugs_rename_column('t', 'y', 'x'), "
      "flugs_rename_column('t', 'tmp', 'y')");
  CHECK(second.rows("SELECT x, y FROM t WHERE k = 1") == std::vector<std::string>{"20", "10"});
  CHECK(second.rows("SELECT x, y FROM t") == std::vector<std::string>{"20", "10"});
  REQUIRE(second.run("UPDATE t SET x = 99 WHERE x = 20") == SQLITE_OK);
  CHECK(first.rows("SELECT x, y FROM t") == std::vector<std::string>{"99", "10"});
  refused("SELECT flugs_drop_column('t', 'y')");
  refused("SELECT flugs_add_column('t', 'z INTEGER NOT NULL DEFAULT 3')");
  refused("SELECT flugs_add_index('t', 'CONSTRAINT once UNIQUE(x)')");
  CHECK(second.rows("SELECT * FROM t") == std::vector<std::string>{"1", "99", "3"});
  // What hurts nobody does not stop others.
  REQUIRE(first.run("SELECT flugs_add_index('t', 'INDEX by_z(z)')") == SQLITE_OK);
  REQUIRE(first.run("CREATE VIRTUAL TABLE temp.u USING flugs(a INTEGER)") == SQLITE_OK);
  CHECK(second.run("UPDATE t SET x = 100 WHERE k = 1") == SQLITE_OK);
  CHECK(second.rows("SELECT * FROM t") == std::vector<std::string>{"1", "100", "3"});
}

TEST_CASE("a table that another connection has dropped and made anew is another one") {
  const TemporaryPath path;
  Connection first(path.string());
  const char* make = "CREATE VIRTUAL TABLE temp.t USING flugs(k INTEGER PRIMARY KEY, s TEXT)";
  REQUIRE(first.run(make) == SQLITE_OK);
  Connection second(path.string());
  REQUIRE(first.run("DROP TABLE t; CREATE VIRTUAL TABLE temp.t USING flugs(s TEXT, "
                    "k INTEGER PRIMARY KEY)") == SQLITE_OK);
  REQUIRE(first.run("INSERT INTO t VALUES('a', 1)") == SQLITE_OK);
  for (const char* sql : {"SELECT * FROM t", "INSERT INTO t VALUES(2, 'b')", "DELETE FROM t"}) {
    INFO(sql);
    CHECK_THAT(failure(second, sql), Catch::Contains("definition of t has changed"));
  }
  REQUIRE(second.run("DROP TABLE t") == SQLITE_OK);  // SQLite forgets it
  REQUIRE(second.run(open_again(path)) == SQLITE_OK);
  CHECK(second.rows("SELECT * FROM t") == std::vector<std::string>{"a", "1"});
}

}  // namespace flugs::test
