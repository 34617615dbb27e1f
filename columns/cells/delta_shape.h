#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/cells/row_layout.h"

namespace flugs::columns {

/// How the rows of a table's next chunks lie: their shape, and which columns share a record.
struct DeltaShape {
  RowShape shape = RowShape::kRows;
  std::vector<std::uint8_t> groups = {};  ///< of the first columns; the others have none

  std::uint8_t group(std::size_t column) const noexcept {
    return column < groups.size() ? groups[column] : 0;
  }
  /// A layout of this shape. Gives the needs the groups of their columns.
  Result<RowLayout> layout(std::span<CellNeed> needs) const {
    for (std::size_t i = 0; i < needs.size(); ++i) needs[i].group = group(i);
    return RowLayout::make(needs, shape);
  }
  /// Whether rows of the layout lie in this way.
  bool is_of(const RowLayout& layout) const noexcept;
};

}  // namespace flugs::columns
