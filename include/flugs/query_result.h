#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/expression.h"
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
/// exists. Columns are numbered as in QueryResult::columns. Neither the number nor the type asked
/// for is checked.
///
/// Thread-safety: any thread.
class ResultBatch {
 public:
  std::size_t row_count() const noexcept { return row_count_; }
  /// The column must be of type bool, int32, int64, decimal, date or timestamp; 0 at a NULL.
  std::span<const std::int64_t> integers(std::size_t column) const noexcept;
  /// The column must be of type double; 0 at a NULL.
  std::span<const double> doubles(std::size_t column) const noexcept;
  /// The column must be of type string or bytes; empty at a NULL.
  std::span<const std::string_view> strings(std::size_t column) const noexcept;
  /// 1 where the value is NULL, else 0; empty when these rows have no NULL.
  std::span<const std::uint8_t> nulls(std::size_t column) const noexcept;

 private:
  friend class QueryResult;
  ResultBatch(const ResultData* data, std::size_t index, std::size_t rows) noexcept
      : data_(data), index_(index), row_count_(rows) {}
  const ResultData* data_;
  std::size_t index_;
  std::size_t row_count_;
};
static_assert(std::is_trivially_copyable_v<ResultBatch>);

/// The result of a query. It owns all that it holds, text too, so it stays valid after the
/// transaction has ended and the database is closed. Copies share.
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

  /// One value; `row` below row_count, `column` below the number of columns. A decimal is in units
  /// of the column's scale.
  Value value(std::size_t row, std::size_t column) const noexcept;
  /// The same value as a constant for another query: SQL calls this a scalar sub-query.
  Expr constant(std::size_t row, std::size_t column) const;

  const QueryStatistics& statistics() const noexcept;
  /// The plan, with figures of each operator: rows in and out, how each condition was evaluated (on
  /// codes, per dictionary entry, by value), how groups were found, memory, time.
  const std::string& explain() const noexcept;
  const std::shared_ptr<const ResultData>& data() const noexcept { return data_; }

 private:
  std::shared_ptr<const ResultData> data_;
};

}  // namespace flugs::query
