#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "flugs/database.h"
#include "test/bindings/sqlite/logic_script.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

namespace {

constexpr const char* kNotShown =
    "SELECT \"table\" FROM flugs_statistics WHERE name = 'not_shown' ORDER BY 1";

/// The message of a statement that fails.
std::string message_of(Connection& connection, const std::string& sql) {
  return connection.run(sql) == SQLITE_OK ? "done" : connection.message();
}

}  // namespace

TEST_CASE("names that SQLite takes for the same do not come into the pool") {
  const TemporaryPath path;
  using Catch::Contains;
  {
    Connection own(path.string());
    REQUIRE(own.run("CREATE VIRTUAL TABLE temp.ok USING flugs(k INTEGER PRIMARY KEY, s TEXT)") ==
            SQLITE_OK);
    for (const char* sql :
         {"CREATE VIRTUAL TABLE temp.t USING flugs(a INTEGER, A INTEGER)",
          "SELECT flugs_add_column('ok', 'K TEXT')", "SELECT flugs_rename_column('ok', 's', 'K')",
          "CREATE VIRTUAL TABLE main.OK USING flugs(k INTEGER)"}) {
      INFO(sql);
      CHECK_THAT(message_of(own, sql), Contains("differ only in case"));
    }
    CHECK_THAT(message_of(own, "CREATE VIRTUAL TABLE main.FLUGS_statistics USING flugs(k INTEGER)"),
               Contains("SQL's own"));
    REQUIRE(own.run("CREATE VIRTUAL TABLE main.other USING flugs(k INTEGER)") == SQLITE_OK);
    CHECK_THAT(message_of(own, "ALTER TABLE main.other RENAME TO Ok"),
               Contains("differ only in case"));
    // The case of a name itself can be changed.
    CHECK(own.run("SELECT flugs_rename_column('ok', 's', 'S')") == SQLITE_OK);
    CHECK(own.run("INSERT INTO ok(k, S) VALUES(1, 'x')") == SQLITE_OK);
    CHECK(own.run("SELECT flugs_drop_column('ok', 'S')") == SQLITE_OK);
    CHECK(own.run("SELECT flugs_add_column('ok', 's TEXT')") == SQLITE_OK);
  }
  Connection own(path.string());
  CHECK(own.rows("SELECT DISTINCT \"table\" FROM flugs_statistics WHERE \"table\" IS NOT NULL "
                 "ORDER BY 1") == std::vector<std::string>{"ok", "other"});
  CHECK(own.rows(kNotShown).empty());
}

TEST_CASE("a table that SQLite does not take does not stay in the pool") {
  Connection own(":memory:");
  const int before = sqlite3_limit(own.db(), SQLITE_LIMIT_COLUMN, 10);
  std::string columns = "c0 INTEGER";
  for (int i = 1; i < 20; ++i) columns += ", c" + std::to_string(i) + " INTEGER";
  const std::string make = "CREATE VIRTUAL TABLE temp.wide USING flugs(" + columns + ")";
  CHECK_THAT(message_of(own, make), Catch::Contains("too many columns"));
  sqlite3_limit(own.db(), SQLITE_LIMIT_COLUMN, before);
  CHECK(own.run("SELECT flugs_schema('wide')") != SQLITE_OK);
  CHECK(own.run(make) == SQLITE_OK);
}

TEST_CASE("a pool opens in SQL though it has tables that SQL cannot show") {
  const TemporaryPath path;
  {
    OpenOptions options;
    options.path = path.string();
    Result<Database> database = Database::open(options);
    REQUIRE(database.ok());
    const auto make = [&](const char* name, const char* second) {
      TableSchema schema;
      schema.name = name;
      schema.columns.resize(2);
      schema.columns[0].name = "a";
      schema.columns[1].name = second;
      REQUIRE(database->create_table(schema).ok());
    };
    make("good", "b");
    make("pair", "A");
    make("sqlite_x", "b");
    make("Twin", "b");
    make("twin", "b");
    make("flugs_statistics", "b");
    make("taken", "b");
  }
  Connection own;
  REQUIRE(own.run("CREATE TEMP TABLE taken(x)") == SQLITE_OK);
  REQUIRE(own.run("INSERT INTO taken VALUES(5)") == SQLITE_OK);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(own.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
    CHECK(own.run("INSERT INTO good VALUES(1, 2)") == SQLITE_OK);
    CHECK(own.run("INSERT INTO twin VALUES(1, 2)") == SQLITE_OK);
    CHECK(own.rows(kNotShown) ==
          std::vector<std::string>{"flugs_statistics", "pair", "sqlite_x", "taken", "twin"});
    CHECK(own.value("SELECT * FROM taken") == "5");
  }
  CHECK_THAT(own.value("SELECT value FROM flugs_statistics WHERE name = 'not_shown' AND "
                       "\"table\" = 'pair'"),
             Catch::Contains("duplicate column name: A"));
  // What can be mended in SQL is shown again.
  REQUIRE(own.run("SELECT flugs_rename_column('pair', 'A', 'b'); DROP TABLE taken") == SQLITE_OK);
  REQUIRE(own.run("SELECT flugs_open('" + path.string() + "')") == SQLITE_OK);
  CHECK(own.value("SELECT count(pair.b) FROM pair, taken") == "0");
  CHECK(own.rows(kNotShown) == std::vector<std::string>{"flugs_statistics", "sqlite_x", "twin"});
  REQUIRE(own.run("SELECT flugs_close()") == SQLITE_OK);
}

TEST_CASE("two connections cannot give names that differ in case at the same moment") {
  const TemporaryPath path;
  Connection first(path.string());
  Connection second(path.string());
  REQUIRE(first.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER)") == SQLITE_OK);
  const std::string open = "SELECT flugs_open('" + path.string() + "')";
  int both = 0;
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    const bool is_table = i % 2 == 0;
    const auto give = [&](const std::string& name) {
      return is_table ? "CREATE VIRTUAL TABLE temp." + name + " USING flugs(id INTEGER)"
                      : "SELECT flugs_add_column('t', '" + name + " INTEGER')";
    };
    std::atomic<int> ready{0};
    int codes[2] = {};
    const auto work = [&](Connection& own, const std::string& sql, int& code) {
      ++ready;
      while (ready < 2) std::this_thread::yield();
      code = own.run(sql);
    };
    std::thread other(work, std::ref(second), give("N" + number), std::ref(codes[1]));
    work(first, give("n" + number), codes[0]);
    other.join();
    INFO(first.message() << ", " << second.message());
    CHECK((codes[0] == SQLITE_OK || codes[1] == SQLITE_OK));
    both += codes[0] == SQLITE_OK && codes[1] == SQLITE_OK ? 1 : 0;
    REQUIRE(first.run(open) == SQLITE_OK);
    if (second.run(open) != SQLITE_OK) FAIL(second.message());
    if (is_table)
      REQUIRE(first.run("DROP TABLE n" + number) == SQLITE_OK);
    else
      REQUIRE(first.run("SELECT flugs_drop_column('t', '" +
                        first.value("SELECT name FROM pragma_table_info('t') WHERE name LIKE 'n" +
                                    number + "'") +
                        "')") == SQLITE_OK);
  }
  CHECK(both == 0);
}

}  // namespace flugs::test
