#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/status.h"

namespace flugs::tools {

/// What a statement costs on tables of flugs and on those of SQLite.
struct SqlFigure {
  std::string what;
  std::string unit;  ///< "us" or "ns"
  // Processor times, one per run.
  std::vector<double> flugs;
  std::vector<double> sqlite;
};

struct SqlLoad {
  std::string pool;    ///< to be made
  std::string sqlite;  ///< a database of SQLite to be made
  std::uint64_t rows = 1'000'000;
  std::uint64_t statements = 200'000;  ///< look-ups and updates of a run
  std::uint32_t runs = 3;
};

/// Loads a table by INSERT, 10,000 rows a transaction, looks rows up by key, changes them in
/// transactions of their own, and scans the table: through prepared statements, on both sides.
/// SQLite has a write-ahead log, and `synchronous` NORMAL. Fails with: kInvalidArgument (SQLite's
/// message, or the sides give different sums).
Result<std::vector<SqlFigure>> measure_sql(const SqlLoad& load);

}  // namespace flugs::tools
