#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "mvcc/visibility.h"
#include "query/scan/scan_unit.h"
#include "query/vectors/vec.h"
#include "tables/data/table_data.h"

namespace flugs::query {

/// A table as one query sees it: columns with their domains, and the units that hold its rows.
class TableView {
 public:
  TableView(const engine::TableData& table, const mvcc::Visibility& visibility);

  const std::string& name() const noexcept { return table_.name(); }
  /// All columns; those with a dictionary have a domain.
  const Schema& schema() const noexcept { return schema_; }
  const std::vector<std::unique_ptr<ScanUnit>>& units() const noexcept { return units_; }
  std::uint64_t row_positions() const noexcept { return row_positions_; }
  /// Roughly the range of a column's payloads, over rows about which something is known; nullopt if
  /// there are none, or if the column is not one of integers.
  std::optional<PayloadRange> likely_range(std::uint32_t column) const;
  /// Adds row positions of the delta, which a query has read, to the count of the table.
  void note_delta_read(std::uint64_t rows) const noexcept {
    if (rows != 0) table_.delta_rows_read.fetch_add(rows, std::memory_order_relaxed);
  }
  /// This memory of a unit is about to be read.
  void read_ahead(std::span<const std::byte> memory) const noexcept {
    table_.pool.read_ahead(memory);
  }
  /// The part of row_positions() that lies in main, where codes of the domains must be looked up.
  std::uint64_t main_row_positions() const noexcept { return main_row_positions_; }
  /// Whether all row groups keep their codes of the domain from query to query, so that they are
  /// looked up once.
  bool keeps_codes(std::uint32_t column) const noexcept;

 private:
  void add_columns();
  void add_formers(const columns::RowLayout& layout);
  void add_units(const mvcc::Visibility& visibility, std::uint32_t rows_end);
  void add_group(const engine::RowGroup& group, std::uint32_t first_row,
                 const mvcc::Visibility& visibility);

  const engine::TableData& table_;
  Schema schema_;
  std::uint64_t editions_ = 0;  // of the columns in `schema_`, as ColumnArray::editions
  std::vector<std::unique_ptr<ScanUnit>> units_;
  std::vector<const engine::RowGroup*> groups_;
  std::uint64_t row_positions_ = 0;
  std::uint64_t main_row_positions_ = 0;
};

}  // namespace flugs::query
