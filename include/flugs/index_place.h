#pragma once

#include <cstdint>

namespace flugs {

/// Where the library keeps the indexes from values to ValueIDs, and from unique keys to rows.
enum class IndexPlace : std::uint8_t {
  kDram,  ///< in DRAM; made from the data after opening: look-ups are slower until they are made
  kPool,  ///< in the pool; opening finds them, at any size (docs/decisions/0015-hint-indexes.md)
};
inline constexpr IndexPlace kDefaultIndexPlace = IndexPlace::kPool;

}  // namespace flugs
