#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

namespace {

std::string read_script(const std::string& name) {
  std::ifstream in(std::string(FLUGS_SCRIPTS) + "/" + name + ".test");
  REQUIRE(in.good());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

void run_on_both(const std::string& name, std::size_t statements_min) {
  const TemporaryPath path;
  ScriptResult result;
  {
    Connection sqlite;
    Connection flugs(path.string());
    result = run_script(read_script(name), {"sqlite", sqlite}, {"flugs", flugs});
    // Nothing holds on to a transaction.
    CHECK(flugs.value("SELECT value FROM flugs_statistics WHERE name = 'transactions_open'") ==
          "0");
  }
  for (const std::string& failure : result.failures) UNSCOPED_INFO(failure);
  CHECK(result.failures.empty());
  CHECK(result.statements >= statements_min);
}

}  // namespace

TEST_CASE("savepoints before the first write are those of SQLite") {
  run_on_both("savepoints", 100);
}
TEST_CASE("look-ups, ranges and orders by keys are those of SQLite") { run_on_both("keys", 75); }
TEST_CASE("writes, conflict clauses and savepoints are those of SQLite") {
  run_on_both("writes", 88);
}
TEST_CASE("joins, groups and windows are those of SQLite") { run_on_both("queries", 58); }
TEST_CASE("values of each type are those of a STRICT table") { run_on_both("types", 50); }

TEST_CASE("the runner of scripts finds what differs") {
  Connection sqlite;
  Connection flugs;
  const Side left{"sqlite", sqlite};
  const Side right{"flugs", flugs};
  const auto failures = [&](const char* script) {
    return run_script(script, left, right).failures.size();
  };
  CHECK(failures("statement ok\nSELECT 1\n") == 0);
  CHECK(failures("statement error\nSELECT 1\n") == 2);
  CHECK(failures("statement ok\nSELECT nothing\n") == 2);
  CHECK(failures("query I nosort\nSELECT 1\n----\n2\n") == 2);
  CHECK(failures("onlyif flugs\nquery I nosort\nSELECT 1\n----\n2\n") == 1);
  CHECK(failures("query II rowsort\nVALUES(2, 1), (1, 2)\n----\n1\n2\n2\n1\n") == 0);
  CHECK(sqlite.run("CREATE TABLE t(a)") == SQLITE_OK);
  CHECK(flugs.run("CREATE TABLE t(a)") == SQLITE_OK);
  CHECK(sqlite.run("INSERT INTO t VALUES(1)") == SQLITE_OK);
  CHECK(failures("query I nosort\nSELECT count(*) FROM t\n") == 1);
  ScriptResult result;
  run_both("SELECT a FROM t", true, left, right, result);
  run_both("SELECT b FROM t", true, left, right, result);
  CHECK(result.failures.size() == 1);
  CHECK(result.errors == 1);
}

}  // namespace flugs::test
