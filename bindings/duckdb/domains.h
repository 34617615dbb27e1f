#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <stop_token>
#include <vector>

#include "flugs/database.h"

namespace flugs::duckdb {

/// How many values the columns of a table can have, roughly: for the order of joins.
struct Domains {
  std::uint64_t rows = 0;  ///< of the table, when this was found out
  /// By column of the schema. As many as rows: each value may be unique, or the table is small.
  std::vector<std::uint64_t> values;
};

/// Rows of a table, for the order of joins. Few rows are counted.
std::uint64_t estimate_rows(Database& database, const Table& table);

/// What is known of the columns of a pool's tables. It is looked for anew when the number of rows
/// has changed by a quarter.
///
/// Thread-safety: any thread.
class KnownDomains {
 public:
  /// Fails with: as Query::run.
  Result<Domains> of(Database& database, const Table& table, const std::stop_token& stop);

 private:
  std::mutex mutex_;  // protects `known_`, and that one thread at a time looks
  std::map<TableId, Domains> known_;
};

}  // namespace flugs::duckdb
