#pragma once

#include <string>

#include "test/query/naive.h"
#include "test/query/sql_text.h"

struct sqlite3;

namespace flugs::test {

/// The same tables in an SQLite database in memory. Main thread only; an error fails the test.
class SqliteJudge {
 public:
  SqliteJudge();
  ~SqliteJudge();
  SqliteJudge(const SqliteJudge&) = delete;
  SqliteJudge& operator=(const SqliteJudge&) = delete;

  void add_table(const std::string& name, const Relation& rows);
  Relation rows(const SqlQuery& query) const;

 private:
  void execute(const std::string& sql) const;

  sqlite3* sqlite_ = nullptr;
};

}  // namespace flugs::test
