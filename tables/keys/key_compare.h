#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "columns/column/column.h"
#include "columns/column/column_array.h"
#include "flugs/value.h"
#include "tables/rows/row_view.h"

namespace flugs::engine {

/// Order of values of one type: NULL first, numbers by size (NaN last), text byte by byte.
int compare_values(const Value& a, const Value& b) noexcept;

/// Compares rows by the columns of a key. If both rows have cells of the same edition of a column,
/// it compares the cells, without making Values of them: an edition has one ValueID per value.
/// Thread-safety: any thread. A row may even be reused meanwhile: then the result means nothing.
class KeyCompare {
 public:
  KeyCompare(const columns::ColumnArray& columns, std::vector<std::uint16_t> key_columns)
      : columns_(columns), key_columns_(std::move(key_columns)) {}

  const std::vector<std::uint16_t>& columns() const noexcept { return key_columns_; }

  /// Whether two rows have the same key (NULL equals NULL).
  bool is_same(const RowView& a, const RowView& b) const noexcept;
  /// Whether the values of the key's first columns equal `values` (checked and normalised).
  bool is_equal(const RowView& row, std::span<const Value> values) const noexcept {
    FLUGS_DCHECK(values.size() <= key_columns_.size());
    for (std::size_t i = values.size(); i-- > 0;)
      if (!row.equals(*columns_[key_columns_[i]], key_columns_[i], values[i])) return false;
    return true;
  }
  /// <0, 0, >0 as the key of `a` is before, the same as, or behind that of `b`.
  int order(const RowView& a, const RowView& b) const noexcept;
  /// The same for the first columns of a row's key and `values`.
  int order(const RowView& row, std::span<const Value> values) const noexcept;

 private:
  const columns::ColumnArray& columns_;
  const std::vector<std::uint16_t> key_columns_;
};

}  // namespace flugs::engine
