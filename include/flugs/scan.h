#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "flugs/ids.h"
#include "flugs/value.h"

namespace flugs {

/// The rows that a scan returns: all of them without a column. On a dictionary column the value is
/// looked up once and rows are compared by code.
struct Predicate {
  bool has_column = false;
  ColumnId column;
  Value equals;  ///< NULL selects the rows in which the column is NULL

  static Predicate all() { return {}; }
  static Predicate equal(ColumnId column, Value value) { return {true, column, value}; }
};
static_assert(std::is_trivially_copyable_v<Predicate>);

/// Some visible rows of a scan, column by column: the values of one column stand side by side.
/// Valid during the callback that received it (strings: until the transaction ends). `index` counts
/// the requested columns, 0 first. Neither it nor the type asked for is checked.
///
/// Thread-safety: one thread, the one that called scan.
class ScanBatch {
 public:
  /// Rows in a batch at most.
  static constexpr std::size_t kRowsMax = 1024;

  std::size_t row_count() const noexcept { return row_count_; }
  std::span<const RowId> row_ids() const noexcept { return {row_ids_.data(), row_count_}; }

  /// Values of the requested column number `index`, which must be of type bool, int32, int64,
  /// decimal, date or timestamp. The value at a NULL is 0.
  std::span<const std::int64_t> integers(std::size_t index) const noexcept {
    return {columns_[index].integers.data(), row_count_};
  }
  /// The same for a column of type double.
  std::span<const double> doubles(std::size_t index) const noexcept {
    return {columns_[index].doubles.data(), row_count_};
  }
  /// The same for a column of type string or bytes.
  std::span<const std::string_view> strings(std::size_t index) const noexcept {
    return {columns_[index].strings.data(), row_count_};
  }
  /// 1 where the value is NULL, else 0; empty when the batch holds no NULL in this column.
  std::span<const std::uint8_t> nulls(std::size_t index) const noexcept {
    if (!columns_[index].has_nulls) return {};
    return {columns_[index].nulls.data(), row_count_};
  }
  /// One value, whatever its type.
  Value value(std::size_t index, std::size_t row) const noexcept;

  /// The batch's data; filled by the engine.
  struct Column {
    Type type = Type::kInt64;
    bool has_nulls = false;
    std::vector<std::int64_t> integers;
    std::vector<double> doubles;
    std::vector<std::string_view> strings;
    std::vector<std::uint8_t> nulls;
  };
  std::vector<Column>& columns() noexcept { return columns_; }
  std::vector<RowId>& row_id_buffer() noexcept { return row_ids_; }
  void set_row_count(std::size_t count) noexcept { row_count_ = count; }

 private:
  std::size_t row_count_ = 0;
  std::vector<RowId> row_ids_;
  std::vector<Column> columns_;
};

static_assert(ScanBatch::kRowsMax % 64 == 0);  // whole words of a mask

}  // namespace flugs
