#pragma once

#include <cstdint>
#include <functional>

#include "bench/scan/scan_totals.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Creates r(a, b, c, d, lc, s), all columns NOT NULL, no key; a to d with the encoding. Fails as
/// Database::create_table.
Result<TableId> create_scan_table(Database& database, Encoding encoding = Encoding::kAuto);

/// Which rows of the data are loaded, and how.
struct ScanLoad {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t threads = 1;
  /// Told the rows loaded of those to load.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// Loads rows of the data, 10,000 in a transaction, and adds them to the totals.
/// Fails as Transaction::insert_rows and commit.
Status load_scan_rows(Database& database, TableId table, const ScanData& data, const ScanLoad& load,
                      ScanTotals& totals);

}  // namespace flugs::bench
