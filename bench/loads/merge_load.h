#pragma once

#include <cstdint>
#include <vector>

#include "flugs/database.h"
#include "flugs/merge.h"

namespace flugs::bench {

/// A table r(c1, c2, ...) of int32 columns for measuring the merge. Column c1 holds D distinct
/// values, c2 a tenth of that, and so on down to ten: what merging costs depends on it.
struct MergeLoad {
  std::uint64_t rows = 0;
  std::uint32_t columns = 0;
  std::uint64_t distinct = 0;  ///< D, at least 1
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;

  std::int32_t value(std::uint64_t row, std::uint32_t column) const noexcept;
};

/// Creates the table and loads it, 10,000 rows in a transaction.
/// Fails as Database::create_table, Transaction::insert_rows and commit.
Result<TableId> load_merge_table(Database& database, const MergeLoad& load);

/// The sum of each column, by a scan, and the number of rows behind them.
Result<std::vector<std::int64_t>> merge_table_sums(Database& database, TableId table,
                                                   std::uint32_t columns);

/// Codes per second of processor time: of the threads that built groups, whatever they waited for.
double codes_per_s_per_core(const MergeReport& report) noexcept;

}  // namespace flugs::bench
