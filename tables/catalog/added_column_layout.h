#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "columns/cells/column_layout.h"

namespace flugs::engine {

/// In the pool: a column that was added to a table (decision 0023). The schema block names it. One
/// extent: this header; at the next line the columns::ColumnLayout; with IndexPlace::kPool, at the
/// line behind it, the columns::HintIndexLayout of its dictionary.
struct AddedColumnLayout {
  static constexpr std::uint64_t kMagic = 0x4c4f434444414c46u;  // "FLADDCOL"
  /// The kind of value that rows have when they lack the column.
  enum Constant : std::uint8_t { kValue = 1, kNull = 2, kNone = 3 };
  std::uint64_t magic;
  std::uint64_t bytes;     ///< of the extent
  std::uint64_t checksum;  ///< XXH3-64 of the two words above and the 40 bytes below, by seed
  std::uint32_t table_id;
  std::uint16_t column;   ///< its number
  std::uint8_t constant;  ///< Constant; kNone: no chunk lacks it, the table had none
  std::uint8_t reserved0;
  std::uint64_t cell[2];       ///< the constant as a cell: a ValueID, a payload, or a text cell
  std::uint64_t hints_offset;  ///< from the beginning of this structure; 0: none
  std::uint64_t reserved1;
};
static_assert(sizeof(AddedColumnLayout) == 64);
// The checksum is of the two words before it, and of all that is behind it.
static_assert(offsetof(AddedColumnLayout, checksum) == 16 &&
              offsetof(AddedColumnLayout, table_id) == 24);
static_assert(std::is_trivially_copyable_v<AddedColumnLayout>);

}  // namespace flugs::engine
