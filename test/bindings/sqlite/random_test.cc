#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "test/bindings/sqlite/logic_script.h"
#include "test/support/random.h"

namespace flugs::test {

namespace {

/// Makes statements about the table t(id, a, b, c, d), and a table u of SQLite.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {}

  std::string statement(bool& is_sorted) {
    is_sorted = false;
    const std::uint64_t kind = random_.below(100);
    if (kind < 22) return insert();
    if (kind < 32) return update();
    if (kind < 38) return "DELETE FROM t WHERE " + condition();
    if (kind < 46) return transaction();
    if (kind < 50) return "INSERT INTO u VALUES(" + number(30) + ", " + text() + ")";
    return select(is_sorted);
  }

 private:
  std::string number(std::uint64_t bound) { return std::to_string(random_.below(bound)); }
  std::string pick(std::initializer_list<const char*> of) {
    return *(of.begin() + random_.below(of.size()));
  }
  std::string text() {
    return random_.chance(15) ? "NULL" : pick({"'a'", "'b'", "'B'", "'ab'", "''", "'5'", "'zz'"});
  }
  std::string value(const std::string& column) {
    if (random_.chance(8)) return "NULL";
    if (!fits_ && random_.chance(6))
      return pick({"'5'", "5.5", "'x'", "x'61'", "-1", "1e18", "5.0"});
    if (column == "b") return text();
    if (column == "d") return number(40) + pick({".0", ".25", ".5", ""});
    return number(column == "id" ? 60 : 12);
  }
  std::string column() { return pick({"id", "a", "b", "c", "d"}); }

  std::string comparison() {
    const std::string of = column();
    switch (random_.below(9)) {
      case 8:  // of which SQLite tells a virtual table nothing
        return pick({"id", "a", "c", "d"}) + pick({" = ", " <= ", " > ", " IS "}) +
               pick({"id", "a", "c", "d"});
      case 0:
        return of + " BETWEEN " + value(of) + " AND " + value(of);
      case 1:
        return of + " IN (" + value(of) + ", " + value(of) + ", " + value(of) + ")";
      case 2:
        return of + pick({" IS NULL", " IS NOT NULL"});
      case 3:
        return of + pick({" IS ", " IS NOT "}) + value(of);
      case 4:
        return "b " + pick({"LIKE 'a%'", "GLOB 'a*'", "GLOB '*b'", "NOT GLOB 'z*'", "LIKE 'B'"});
      default:
        return of + pick({" = ", " < ", " <= ", " > ", " >= ", " <> ", " = "}) + value(of);
    }
  }
  std::string condition() {
    std::string all = comparison();
    while (random_.chance(50)) all += pick({" AND ", " AND ", " OR "}) + comparison();
    return all;
  }

  std::string row() {
    return "(" + value("id") + ", " + value("a") + ", " + value("b") + ", " + value("c") + ", " +
           value("d") + ")";
  }
  std::string insert() {
    // After a wrong type, a STRICT table may keep rows of these that came before.
    fits_ = random_.chance(40);
    std::string sql = "INSERT " +
                      (fits_ ? pick({"OR FAIL ", "OR IGNORE "}) : pick({"", "", "OR REPLACE "})) +
                      "INTO t VALUES" + row();
    while (random_.chance(60)) sql += ", " + row();
    fits_ = false;
    return sql;
  }
  std::string update() {
    const std::string of = pick({"a", "b", "c", "d", "id"});
    // What a unique key refuses depends on the order of rows, unless it is one row.
    if (of == "id" || of == "a" || of == "b")
      return "UPDATE " + pick({"", "OR IGNORE ", "OR REPLACE "}) + "t SET " + of + " = " +
             value(of) + " WHERE id = " + number(60);
    return "UPDATE t SET " + of + " = " +
           (random_.chance(50) ? value(of) : pick({"a", "c + 1", "id * 2", "a - c"})) + " WHERE " +
           condition();
  }
  std::string transaction() {
    return pick({"BEGIN", "BEGIN", "COMMIT", "COMMIT", "ROLLBACK", "SAVEPOINT x", "SAVEPOINT y",
                 "RELEASE x", "RELEASE y", "ROLLBACK TO x", "ROLLBACK TO y"});
  }

  std::string select(bool& is_sorted) {
    const std::string where = random_.chance(85) ? " WHERE " + condition() : "";
    switch (random_.below(7)) {
      case 0:
        return "SELECT count(*), sum(a), min(b), max(c), total(d) FROM t" + where;
      case 1:
        return "SELECT a, count(*), max(b) FROM t" + where + " GROUP BY a";
      case 2:
        return "SELECT t.id, u.w FROM t JOIN u ON u.k = t." + pick({"id", "a", "c", "b", "d"}) +
               where;
      case 3:
        return "SELECT DISTINCT " + column() + " FROM t" + where;
      case 4: {
        is_sorted = true;
        const std::string order =
            pick({" ORDER BY a, b, id", " ORDER BY c DESC, a DESC, id", " ORDER BY c, a, id",
                  " ORDER BY id", " ORDER BY id DESC", " ORDER BY d, id", " ORDER BY b DESC, id"});
        const std::string limit = random_.chance(60) ? " LIMIT " + number(8) : "";
        return "SELECT id, a, b, c FROM t" + where + order + limit +
               (!limit.empty() && random_.chance(50) ? " OFFSET " + number(5) : "");
      }
      case 5:
        return "SELECT x.id, y.id FROM t x LEFT JOIN t y ON y." + pick({"id", "a", "c"}) + " = x." +
               pick({"a", "c", "d"}) + " WHERE x.id < " + number(20);
      default:
        return "SELECT * FROM t" + where;
    }
  }

  Random random_;
  bool fits_ = false;  // no value is of a wrong type
};

std::string with_orders(const char* native, bool is_flugs) {
  return std::string(is_flugs ? "CREATE VIRTUAL TABLE temp.t USING flugs" : "CREATE TABLE t") +
         native;
}

void compare(std::uint64_t seed, std::size_t count, ScriptResult& result) {
  Connection sqlite;
  Connection flugs(":memory:");
  const bool is_ordered = seed % 2 == 1;
  REQUIRE(sqlite.run(with_orders("(id INT PRIMARY KEY NOT NULL, a INT, b TEXT, c INT, d REAL, "
                                 "UNIQUE(a, b)) STRICT",
                                 false)) == SQLITE_OK);
  REQUIRE(
      flugs.run(with_orders(is_ordered ? "(id INTEGER PRIMARY KEY ORDERED, a INT, b TEXT, c INT, d "
                                         "REAL, UNIQUE(a, b) ORDERED, INDEX k(c, a), INDEX l(d, b))"
                                       : "(id INTEGER PRIMARY KEY, a INT, b TEXT, c INT, d REAL, "
                                         "UNIQUE(a, b), INDEX k(c, a, id))",
                            true)) == SQLITE_OK);
  for (Connection* connection : {&sqlite, &flugs})
    REQUIRE(connection->run("CREATE TABLE u(k INTEGER, w TEXT)") == SQLITE_OK);
  Generator generator(seed);
  for (std::size_t i = 0; i < count && result.failures.size() < 5; ++i) {
    bool is_sorted = false;
    const std::string sql = generator.statement(is_sorted);
    run_both(sql, is_sorted, {"sqlite", sqlite}, {"flugs", flugs}, result);
    // No look behind these: the tables of flugs may begin within savepoints.
    const bool begins = sql.starts_with("BEGIN") || sql.starts_with("SAVEPOINT");
    if (!begins && !sql.starts_with("SELECT")) {
      const std::size_t before = result.failures.size();
      run_both("SELECT * FROM t", false, {"sqlite", sqlite}, {"flugs", flugs}, result);
      if (result.failures.size() != before) result.failures.push_back("after " + sql);
    }
    if (i % 500 == 400 && sqlite3_get_autocommit(flugs.db()) != 0)
      REQUIRE(flugs.run("SELECT flugs_merge()") == SQLITE_OK);
  }
}

}  // namespace

TEST_CASE("thousands of random statements do what they do on tables of SQLite") {
#ifdef __SANITIZE_ADDRESS__
  constexpr std::size_t kStatements = 500;
#else
  constexpr std::size_t kStatements = 2500;
#endif
  const char* given = std::getenv("FLUGS_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  ScriptResult result;
  for (std::uint64_t seed = first; seed < first + 4; ++seed) {
    compare(seed, kStatements, result);
    if (!result.failures.empty()) {
      UNSCOPED_INFO("seed " << seed);
      break;
    }
  }
  for (const std::string& failure : result.failures) UNSCOPED_INFO(failure);
  CHECK(result.failures.empty());
  CHECK(result.statements >= 4 * kStatements);
  CHECK(result.errors > result.statements / 20);
}

TEST_CASE("rows that a statement moves are found beside statements that are half done") {
  Connection flugs(":memory:");
  REQUIRE(flugs.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, up INTEGER "
                    "REFERENCES t ON DELETE SET NULL ON UPDATE CASCADE, n INTEGER)") == SQLITE_OK);
  REQUIRE(flugs.run("INSERT INTO t VALUES(1, NULL, 0), (2, 1, 0), (3, 2, 1)") == SQLITE_OK);
  const std::string open = GENERATE(
      // They read the column that the foreign key changes, and the rowid.
      as<std::string>(), "SELECT rowid, up, id FROM t ORDER BY id",
      "SELECT a.rowid, b.up FROM t a JOIN t b ON b.id >= a.id",
      "INSERT INTO t SELECT id + 50, up, 2 FROM t WHERE up = 1 RETURNING id");
  CAPTURE(open);
  const bool in_transaction = GENERATE(false, true);
  if (in_transaction) REQUIRE(flugs.run("BEGIN") == SQLITE_OK);
  sqlite3_stmt* half = nullptr;
  REQUIRE(sqlite3_prepare_v2(flugs.db(), open.c_str(), -1, &half, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_step(half) == SQLITE_ROW);
  // A statement that begins beside it, and stays open as well.
  sqlite3_stmt* other = nullptr;
  REQUIRE(sqlite3_prepare_v2(flugs.db(), "SELECT rowid, up FROM t", -1, &other, nullptr) ==
          SQLITE_OK);
  REQUIRE(sqlite3_step(other) == SQLITE_ROW);
  for (int i = 0; i < 3; ++i) {
    const int code = flugs.run("UPDATE t SET id = id + 100");
    INFO(flugs.message());
    CHECK(code == SQLITE_OK);
  }
  // One that reads the column is refused as ever, and spoils none after it.
  CHECK(flugs.run("UPDATE t SET id = id + 100, n = up") == SQLITE_ERROR);
  const int code = flugs.run("UPDATE t SET id = id + 100");
  INFO(flugs.message());
  CHECK(code == SQLITE_OK);
  sqlite3_finalize(half);
  sqlite3_finalize(other);
  if (in_transaction) REQUIRE(flugs.run("COMMIT") == SQLITE_OK);
  CHECK(flugs.rows("SELECT id, up FROM t WHERE n < 2 ORDER BY id") ==
        std::vector<std::string>{"401", "NULL", "402", "401", "403", "402"});
}

TEST_CASE("statements that move rows of their own table do what they do on tables of SQLite") {
  static constexpr const char* kColumns =
      "(id INTEGER PRIMARY KEY, up INTEGER REFERENCES t ON DELETE SET NULL ON UPDATE CASCADE, "
      "n INTEGER)";
  Connection sqlite;
  Connection flugs(":memory:");
  REQUIRE(sqlite.run("PRAGMA foreign_keys = ON") == SQLITE_OK);
  REQUIRE(sqlite.run(with_orders(kColumns, false)) == SQLITE_OK);
  REQUIRE(flugs.run(with_orders(kColumns, true)) == SQLITE_OK);
  Random random(5);
  ScriptResult result;
  const auto both = [&](const std::string& sql) {
    run_both(sql, false, {"sqlite", sqlite}, {"flugs", flugs}, result);
  };
  // Ids only grow, so that none is taken in any order.
  std::int64_t next = 1;
  for (int i = 0; i < 400 && result.failures.size() < 3; ++i) {
    const std::string some = " WHERE id % " + std::to_string(1 + random.below(4)) + " = 0";
    const std::string other = "(SELECT max(id) FROM t WHERE id % 3 = 1)";
    const std::string step = std::to_string(next);
    switch (random.below(6)) {
      case 0:
        both("UPDATE t SET id = id + " + step + some);
        next *= 2;
        break;
      case 1:
        both("UPDATE t SET id = id + " + step + ", n = n + 1" + some);
        next *= 2;
        break;
      case 2:
        // No row gets to refer to itself: flugs refuses to change that reference again.
        both("UPDATE t SET id = id + " + step + ", up = " + other + " WHERE id % 3 = 0");
        next *= 2;
        break;
      case 3:
        if (random.chance(20)) both("DELETE FROM t" + some);
        break;
      default:
        both("INSERT INTO t VALUES(" + step + ", " + other + ", 0)");
        ++next;
    }
    if (next > (std::int64_t{1} << 50)) {
      both("DELETE FROM t");
      next = 1;
    }
    both("SELECT * FROM t");
  }
  for (const std::string& failure : result.failures) UNSCOPED_INFO(failure);
  CHECK(result.failures.empty());
  CHECK(result.errors < result.statements / 10);
}

}  // namespace flugs::test
