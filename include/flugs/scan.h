#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "flugs/ids.h"
#include "flugs/reads.h"
#include "flugs/status.h"
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
/// the requested columns, 0 first.
///
/// Thread-safety: one thread, the one that called scan.
class ScanBatch {
 public:
  /// Rows in a batch at most.
  static constexpr std::size_t kRowsMax = 1024;

  std::size_t row_count() const noexcept { return row_count_; }
  std::span<const RowId> row_ids() const noexcept { return {row_ids_.data(), row_count_}; }

  /// The values of a requested column, one per row. T is std::int64_t for a column of type bool,
  /// int32, int64, decimal (units), date (days) or timestamp (microseconds); double for a double;
  /// std::string_view for string and bytes. 0, or an empty text, stands at a NULL.
  /// Fails with: kInvalidArgument (no such column, or one of another type).
  template <LaneType T>
  Result<std::span<const T>> column(std::size_t index) const {
    if (index >= columns_.size() || !detail::wanted_lane<T>().admits(columns_[index].type))
      return misread(index, detail::wanted_lane<T>());
    return column_unchecked<T>(index);
  }
  /// The same without a look at number and type.
  template <LaneType T>
  std::span<const T> column_unchecked(std::size_t index) const noexcept {
    if constexpr (std::same_as<T, std::int64_t>)
      return {columns_[index].integers.data(), row_count_};
    else if constexpr (std::same_as<T, double>)
      return {columns_[index].doubles.data(), row_count_};
    else
      return {columns_[index].strings.data(), row_count_};
  }
  /// 1 where the value is NULL, else 0; empty when the batch holds no NULL in this column, or no
  /// such column.
  std::span<const std::uint8_t> nulls(std::size_t index) const noexcept {
    if (index >= columns_.size() || !columns_[index].has_nulls) return {};
    return {columns_[index].nulls.data(), row_count_};
  }
  /// One value, whatever its type; `index` and `row` must exist.
  Value get_unchecked(std::size_t index, std::size_t row) const noexcept;

  /// The batch's data; filled by the engine.
  struct Column {
    Type type = Type::kInt64;
    std::uint8_t scale = 0;
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
  Status misread(std::size_t index, detail::Wanted wanted) const;

  std::size_t row_count_ = 0;
  std::vector<RowId> row_ids_;
  std::vector<Column> columns_;
};

static_assert(ScanBatch::kRowsMax % 64 == 0);  // whole words of a mask

}  // namespace flugs
