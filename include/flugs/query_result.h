#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "flugs/expression.h"
#include "flugs/reads.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::query {

struct ResultData;

/// A column of a result. `scale` is that of a decimal.
struct ResultColumn {
  std::string name;
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
};

/// The cost of running a query.
struct QueryStatistics {
  std::uint64_t rows_scanned = 0;   ///< row positions of tables that were examined
  std::uint64_t rows_skipped = 0;   ///< not examined, because minimum and maximum ruled them out
  std::uint64_t rows_selected = 0;  ///< scanned rows that are visible and passed the filters
  std::uint64_t batches = 0;        ///< batches that went through the operators
  std::uint64_t memory_bytes_peak = 0;
  std::uint32_t threads = 0;  ///< at most; fewer when the system refused to start some
  double seconds = 0;
  /// MVCC entries of rows in main that were read one by one: rows that are being deleted, or that
  /// no earlier query has found deleted for good.
  std::uint64_t main_entries_read = 0;
};

/// Some rows of a result, column by column. A view: valid as long as a QueryResult of the query
/// exists. Columns are numbered as in QueryResult::columns.
///
/// Thread-safety: any thread.
class ResultBatch {
 public:
  std::size_t row_count() const noexcept { return row_count_; }
  /// The values of a column, one per row. T is std::int64_t for a column of type bool, int32,
  /// int64, decimal (units), date (days) or timestamp (microseconds); double for a double;
  /// std::string_view for string and bytes. 0, or an empty text, stands at a NULL.
  /// Fails with: kInvalidArgument (no such column, or one of another type).
  template <LaneType T>
  Result<std::span<const T>> column(std::size_t column) const {
    if (Status s = check(column, detail::wanted_lane<T>()); !s.ok()) return s;
    return column_unchecked<T>(column);
  }
  /// The same without a look at number and type.
  template <LaneType T>
  std::span<const T> column_unchecked(std::size_t column) const noexcept;
  /// 1 where the value is NULL, else 0; empty when these rows have no NULL, or no such column.
  std::span<const std::uint8_t> nulls(std::size_t column) const noexcept;

 private:
  Status check(std::size_t column, detail::Wanted wanted) const;
  friend class QueryResult;
  ResultBatch(const ResultData* data, std::size_t index, std::size_t rows) noexcept
      : data_(data), index_(index), row_count_(rows) {}
  const ResultData* data_;
  std::size_t index_;
  std::size_t row_count_;
};
static_assert(std::is_trivially_copyable_v<ResultBatch>);

template <>
std::span<const std::int64_t> ResultBatch::column_unchecked(std::size_t column) const noexcept;
template <>
std::span<const double> ResultBatch::column_unchecked(std::size_t column) const noexcept;
template <>
std::span<const std::string_view> ResultBatch::column_unchecked(std::size_t column) const noexcept;

/// The result of a query. It owns all that it holds, text too, so it stays valid after the
/// transaction has ended and the database is closed. Copies share. After a move from it, only
/// assignment and destruction are allowed.
///
/// Thread-safety: immutable; any thread.
class QueryResult {
 public:
  explicit QueryResult(std::shared_ptr<const ResultData> data) noexcept;

  const std::vector<ResultColumn>& columns() const noexcept;
  /// Position of a column by name.
  std::optional<std::size_t> find(std::string_view column) const noexcept;
  std::size_t row_count() const noexcept;

  std::size_t batch_count() const noexcept;
  /// `index` is below batch_count.
  ResultBatch batch(std::size_t index) const noexcept;

  /// One value, as a C++ type that fits the column's. Rows and columns count from 0.
  /// Fails with: kInvalidArgument (no such row or column; the column's type does not fit T; the
  /// value is NULL, and T is neither a std::optional nor Value).
  template <Readable T = Value>
  Result<T> get(std::size_t row, std::size_t column) const {
    Value value;
    if (Status s = read(row, column, detail::Wanted::of<T>(), value); !s.ok()) return s;
    return detail::Reads<T>::of(value);
  }
  /// The same by the column's name. Fails with: as above; kNotFound (no column of this name).
  template <Readable T = Value>
  Result<T> get(std::size_t row, std::string_view column) const {
    const std::optional<std::size_t> position = find(column);
    if (!position) return no_column(column);
    return get<T>(row, *position);
  }
  /// `row` below row_count, `column` below the number of columns.
  Value get_unchecked(std::size_t row, std::size_t column) const noexcept;
  /// The same value as a constant for another query: SQL calls this a scalar sub-query. A query
  /// with the constant of a row or column that does not exist fails with kInvalidArgument.
  Expr constant(std::size_t row, std::size_t column) const;

  const QueryStatistics& statistics() const noexcept;
  /// The plan, with figures of each operator: rows in and out, how each condition was evaluated (on
  /// codes, per dictionary entry, by value), how groups were found, memory, time.
  const std::string& explain() const noexcept;
  const std::shared_ptr<const ResultData>& data() const noexcept { return data_; }

 private:
  Status read(std::size_t row, std::size_t column, detail::Wanted wanted, Value& out) const;
  Status no_column(std::string_view name) const;
  std::shared_ptr<const ResultData> data_;
};
static_assert(std::is_nothrow_move_constructible_v<QueryResult>);

}  // namespace flugs::query
