#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "bench/tpcc/ch_queries.h"
#include "flugs/database.h"

struct sqlite3;
struct sqlite3_stmt;

namespace flugs::test {

/// NULL, an integer, a double, a text.
using Cell = std::variant<std::monostate, std::int64_t, double, std::string>;
using Rows = std::vector<std::vector<Cell>>;

std::string to_string(const Cell& cell);

/// Copies what a transaction sees of a database into an SQLite database in memory. Tables and
/// columns keep their names; decimals are units, dates and timestamps their counts. It reads by
/// `scan`, which shares no code with queries. Main thread only; an error fails the test.
class SqliteCopy {
 public:
  SqliteCopy(const Database& database, const Transaction& transaction,
             const std::vector<std::string>& tables);
  ~SqliteCopy();
  SqliteCopy(const SqliteCopy&) = delete;
  SqliteCopy& operator=(const SqliteCopy&) = delete;

  /// `sql` may name $since and $until.
  Rows rows(std::string_view sql, const bench::ChPeriod& period = {}) const;
  /// The single integer that `sql` returns.
  std::int64_t number(std::string_view sql) const;

 private:
  void execute(const std::string& sql) const;
  sqlite3_stmt* prepare(std::string_view sql) const;
  void copy_table(const Database& database, const Transaction& transaction, TableId table) const;

  sqlite3* sqlite_ = nullptr;
};

}  // namespace flugs::test
