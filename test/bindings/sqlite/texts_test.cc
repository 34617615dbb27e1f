#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "test/bindings/sqlite/logic_script.h"

// Texts and blobs that SQLite is given: it must have them for as long as it wants.

namespace flugs::test {

namespace {

/// The text of a row: longer with each number, and another one in each column.
std::string text_of(int number, int column) {
  return std::string(static_cast<std::size_t>(number), static_cast<char>('a' + column % 26)) +
         std::to_string(number) + "." + std::to_string(column);
}

void insert_texts(Connection& own, int number, int columns) {
  std::string values = std::to_string(number);
  for (int i = 0; i < columns; ++i) values += ", '" + text_of(number, i) + "'";
  REQUIRE(own.run("INSERT INTO t VALUES(" + values + ")") == SQLITE_OK);
}

std::string_view column_text(sqlite3_stmt* statement, int column) {
  return reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
}

}  // namespace

TEST_CASE("each of many texts of a row stays as it is, whatever its length") {
  constexpr int kColumns = 60;
  constexpr int kRows = 140;
  Connection own(":memory:");
  std::string definition = "id INTEGER PRIMARY KEY";
  for (int i = 0; i < kColumns; ++i) definition += ", c" + std::to_string(i) + " TEXT";
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(" + definition + ")") == SQLITE_OK);
  for (int row = 0; row < kRows; ++row) insert_texts(own, row, kColumns);
  // Both ways to a row: by key, and by a scan.
  for (const char* sql : {"SELECT * FROM t WHERE id = ?1", "SELECT * FROM t WHERE +id = ?1"}) {
    INFO(sql);
    sqlite3_stmt* statement = nullptr;
    REQUIRE(sqlite3_prepare_v2(own.db(), sql, -1, &statement, nullptr) == SQLITE_OK);
    for (int row = 0; row < kRows; ++row) {
      sqlite3_bind_int(statement, 1, row);
      REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
      bool is_same = true;
      for (int i = 0; i < kColumns; ++i)
        is_same =
            is_same && column_text(statement, i + 1) == text_of(row, i) &&
            sqlite3_column_bytes(statement, i + 1) == static_cast<int>(text_of(row, i).size());
      CHECK(is_same);
      REQUIRE(sqlite3_step(statement) == SQLITE_DONE);
      sqlite3_reset(statement);
    }
    CHECK(sqlite3_finalize(statement) == SQLITE_OK);
  }
}

TEST_CASE("texts with a zero byte, empty ones and blobs come back whole") {
  Connection own(":memory:");
  REQUIRE(
      own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, a TEXT, b BLOB)") ==
      SQLITE_OK);
  REQUIRE(own.run("INSERT INTO t VALUES(1, 'a' || char(0) || 'b', x'0001'), (2, '', x''), "
                  "(3, NULL, NULL), (4, 'abc', zeroblob(200)), (5, char(0), x'00')") == SQLITE_OK);
  const auto seen = [&](const std::string& id) {
    return own.rows(
        "SELECT typeof(a), hex(a), length(CAST(a AS BLOB)), typeof(b), length(b), "
        "hex(substr(b, 1, 2)) FROM t WHERE id = " +
        id);
  };
  using Row = std::vector<std::string>;
  CHECK(seen("1") == Row{"text", "610062", "3", "blob", "2", "0001"});
  CHECK(seen("2") == Row{"text", "(empty)", "0", "blob", "0", "(empty)"});
  CHECK(seen("3") == Row{"null", "(empty)", "NULL", "null", "NULL", "(empty)"});
  CHECK(seen("4") == Row{"text", "616263", "3", "blob", "200", "0000"});
  CHECK(seen("5") == Row{"text", "00", "1", "blob", "1", "00"});
}

TEST_CASE("texts stay when the cursor that gave them is gone, or has gone on") {
  Connection own(":memory:");
  REQUIRE(own.run("CREATE VIRTUAL TABLE temp.t USING flugs(id INTEGER PRIMARY KEY, name TEXT)") ==
          SQLITE_OK);
  for (int row = 0; row < 100; ++row) insert_texts(own, row, 1);
  const std::string first = text_of(1, 0);
  const std::string last = text_of(9, 0);
  // A subquery, whose cursor is closed before the outer one reads.
  CHECK(own.rows("SELECT (SELECT name FROM t WHERE id = 1), max(name), min(name) FROM t "
                 "WHERE id IN (9, 1, 5)") == std::vector<std::string>{first, last, first});
  CHECK(own.value("SELECT group_concat(name, '') FROM (SELECT name FROM t WHERE id IN (1, 9))") ==
        first + last);
  CHECK(own.rows("SELECT name, lag(name, 1) OVER (ORDER BY id), first_value(name) OVER "
                 "(ORDER BY id) FROM t WHERE id IN (1, 9) ORDER BY id DESC LIMIT 1") ==
        std::vector<std::string>{last, first, first});
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(own.db(), "SELECT name FROM t WHERE id = ?1", -1, &statement,
                             nullptr) == SQLITE_OK);
  std::vector<sqlite3_value*> kept;
  for (int row = 0; row < 100; ++row) {
    sqlite3_bind_int(statement, 1, row);
    REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
    kept.push_back(sqlite3_value_dup(sqlite3_column_value(statement, 0)));
    sqlite3_reset(statement);
  }
  CHECK(sqlite3_finalize(statement) == SQLITE_OK);
  for (int row = 0; row < 100; ++row) {
    sqlite3_value* const value = kept[static_cast<std::size_t>(row)];
    CHECK(std::string_view(reinterpret_cast<const char*>(sqlite3_value_text(value))) ==
          text_of(row, 0));
    sqlite3_value_free(value);
  }
}

TEST_CASE("a connection that is closed before its statements has their texts until then") {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(":memory:", &db) == SQLITE_OK);
  REQUIRE(sqlite3_flugssqlite_init(db, nullptr, nullptr) == SQLITE_OK);
  REQUIRE(sqlite3_exec(db,
                       "SELECT flugs_open(':memory:'); CREATE VIRTUAL TABLE temp.t USING "
                       "flugs(id INTEGER PRIMARY KEY, name TEXT); INSERT INTO t VALUES(1, 'Ada')",
                       nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_stmt* statement = nullptr;
  REQUIRE(sqlite3_prepare_v2(db, "SELECT name FROM t WHERE id = 1", -1, &statement, nullptr) ==
          SQLITE_OK);
  REQUIRE(sqlite3_step(statement) == SQLITE_ROW);
  REQUIRE(sqlite3_close_v2(db) == SQLITE_OK);
  CHECK(column_text(statement, 0) == "Ada");
  CHECK(sqlite3_step(statement) == SQLITE_DONE);
  CHECK(sqlite3_finalize(statement) == SQLITE_OK);
}

}  // namespace flugs::test
