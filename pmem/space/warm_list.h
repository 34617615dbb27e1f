#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "pmem/space/extent_allocator.h"

namespace flugs::pmem {

/// Kinds of extents. Those that are read first, and most often, come first.
enum class Heat : std::uint8_t { kIndexes, kValues, kRows, kGroups, kTexts };
inline constexpr std::size_t kHeats = 5;
static_assert(kHeats == static_cast<std::size_t>(Heat::kTexts) + 1);

/// Extents in use, whose pages should be mapped before they are read. Thread-safety: one thread at
/// a time.
class WarmList {
 public:
  void add(Heat heat, Extent extent) { extents_[static_cast<std::size_t>(heat)].push_back(extent); }

  /// The hottest extents first, and those of one heat in the order in which they were added;
  /// `bytes_max` in all.
  std::vector<Extent> hottest(std::uint64_t bytes_max) const {
    std::vector<Extent> taken;
    for (const std::vector<Extent>& extents : extents_)
      for (Extent extent : extents) {
        if (bytes_max == 0) return taken;
        extent.bytes = std::min(extent.bytes, bytes_max);
        bytes_max -= extent.bytes;
        taken.push_back(extent);
      }
    return taken;
  }

 private:
  std::array<std::vector<Extent>, kHeats> extents_;
};

}  // namespace flugs::pmem
