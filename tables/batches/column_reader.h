#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "flugs/column_batch.h"
#include "flugs/status.h"
#include "tables/batches/block_column.h"
#include "tables/data/table_definition.h"

namespace flugs::engine {

/// Reads one column of a batch, block by block: checks each value, and converts it to the type of
/// the table's column by the rule of exact_value.
///
/// The memory is another program's: lengths, codes, offsets and places of texts are checked before
/// they are used. What a buffer's pointer leads to cannot be checked.
/// Thread-safety: one thread.
class ColumnReader final {
 public:
  /// A column of the batch. `column` and `defined` must outlive the reader.
  ColumnReader(const BatchColumn& column, const DefinedColumn& defined) noexcept;
  /// All rows have this value, which the column stores as it is. A text must outlive the reader.
  ColumnReader(const Value& value, const DefinedColumn& defined) noexcept;

  /// Whether the array can be read at all: its form fits its type, its buffers are there.
  Status check(std::size_t rows) const;
  bool is_constant() const noexcept { return batch_ == nullptr; }
  /// Number of entries of the dictionary of the batch; 0: the column has none.
  std::size_t entry_count() const noexcept {
    return batch_ != nullptr && batch_->dictionary ? batch_->dictionary->size : 0;
  }

  /// Reads rows [first, first + rows) into `out`. Returns how many of them are before the first
  /// value that the column does not take; NULLs of a column that is NOT NULL are left to the
  /// caller.
  std::size_t read(std::size_t first, std::size_t rows, BlockColumn& out) const;
  /// Why `read` stopped at this row. If a value does not fit, `misfit` becomes that value and the
  /// status is ok: the column says why it refuses the value.
  Status why_stopped(std::size_t row, Value& misfit) const;
  /// The value of one row, if the column takes it; else NULL.
  Value value(std::size_t row) const;

 private:
  enum class Conversion : std::uint8_t { kNone, kNarrow, kReal, kTruth, kByValue };
  enum class Found : std::uint8_t { kValue, kNull, kDamaged, kOutOfRange };

  Conversion conversion() const noexcept;
  std::size_t convert(std::size_t rows, BlockColumn& out) const;
  std::size_t convert_by_value(std::size_t rows, BlockColumn& out) const;
  std::size_t read_entries(std::size_t first, std::size_t rows, BlockColumn& out) const;
  Found find(std::size_t row, Value& value, std::string& why) const;

  const BatchColumn* batch_;  // null: all rows have constant_
  const DefinedColumn& defined_;
  const ValueArray* data_;  // the values, or the entries of the dictionary
  Value constant_;
  Conversion conversion_ = Conversion::kNone;
};

}  // namespace flugs::engine
