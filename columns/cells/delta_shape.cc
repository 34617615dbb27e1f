#include "columns/cells/delta_shape.h"

#include <array>

namespace flugs::columns {

// A layout has no record for a single cell.
bool DeltaShape::is_of(const RowLayout& layout) const noexcept {
  if (layout.shape() != shape) return false;
  if (shape == RowShape::kRows) return true;
  const std::size_t cells = layout.cells().size();
  std::array<std::uint16_t, kCellGroups> members{};
  for (std::size_t i = 0; i < cells; ++i)
    if (layout.cells()[i].bits != 0) ++members[group(i)];
  for (std::size_t i = 0; i < cells; ++i) {
    if (layout.cells()[i].bits == 0) continue;
    if (layout.group(i) != (members[group(i)] < 2 ? 0 : group(i))) return false;
  }
  return true;
}

}  // namespace flugs::columns
