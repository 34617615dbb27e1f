#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/scan/scan_data.h"
#include "bench/scan/scan_totals.h"
#include "bench/support/json.h"
#include "flugs/database.h"

namespace flugs::bench {

inline constexpr std::uint32_t kScanAllColumns = (1u << kScanColumns) - 1;

/// The rows of the scan benchmark's table that are updated or deleted. A row is chosen by its
/// position in the loaded table, so that another database can choose the same rows.
struct ScanShare {
  double percent = 0;
  bool together = false;  ///< rows one after the other, in place of rows all over the table
};

/// What happens to the table after the load.
struct ScanChangesOptions {
  ScanShare updated;
  ScanShare deleted;
  /// The columns that an update changes, a bit each; 0: drawn for each row, at least one.
  std::uint32_t columns = 0;
};

/// An updated row: each of its `columns` has the opposite value in the range of that column.
void change_scan_row(const ScanData& data, std::uint32_t columns, ScanRow& row) noexcept;

/// Updates and deletions in a loaded table, 1,000 rows in a transaction, in random order. All is
/// chosen, and the results that the queries must have afterwards are added up, before the first
/// row is written: this relies on no row that was written later.
class ScanChanges {
 public:
  ScanChanges(const ScanData& data, const ScanChangesOptions& options);

  /// Reads the table, which must hold all rows of the data. Fails as Transaction::scan; kCorrupt:
  /// a text, or a number of rows, that the data does not have.
  Status plan(Database& database, TableId table);
  /// Returns how many rows it updated. Fails as Transaction::update and commit.
  Result<std::uint64_t> update(Database& database, TableId table);
  /// The same for deletions, which come after the updates.
  Result<std::uint64_t> remove(Database& database, TableId table);

  const ScanTotals& after_updates() const noexcept { return after_updates_; }
  const ScanTotals& after_deletions() const noexcept { return after_deletions_; }

  /// The same in the SQL of DuckDB, with scan_change_parameters.
  std::string update_sql() const;
  std::string delete_sql() const;

 private:
  struct Choice {
    RowId id;
    std::uint32_t columns = 0;  ///< 0: not updated
    bool is_deleted = false;
    ScanRow row;  ///< as it was loaded
  };
  /// Rows of a share: by a hash, or from a position on.
  struct Chosen {
    ScanShare share;
    std::uint64_t key = 0;
    std::uint64_t first = 0;

    bool has(const ScanData& data, std::uint64_t position) const noexcept;
    std::string sql(const ScanData& data) const;
  };
  std::uint32_t columns_of(std::uint64_t position) const noexcept;
  void choose(std::uint64_t position, RowId id, const ScanRow& row);
  template <typename Write>
  Result<std::uint64_t> write(Database& database, bool (*is_wanted)(const Choice&),
                              const Write& write_row);

  const ScanData& data_;
  const std::uint32_t columns_;
  const Chosen updated_;
  const Chosen deleted_;
  std::vector<Choice> choices_;
  ScanTotals after_updates_;
  ScanTotals after_deletions_;
};

/// The parameters that the SQL of changes names.
Json scan_change_parameters(const ScanData& data);

}  // namespace flugs::bench
