#pragma once

#include <cstdint>
#include <limits>

#include "engine/table.h"
#include "flugs/database.h"

namespace flugs::engine {

/// Which tables' indexes opening makes itself, before it returns: with Ready::kFirstAnswer those
/// that are made in no time, so that most databases are opened with nothing left to be done.
class OpeningRoom {
 public:
  /// Entries and rows, of all tables: a millisecond or two.
  static constexpr std::uint64_t kBuiltAtOnce = 1u << 14;

  explicit OpeningRoom(std::uint64_t entries_and_rows = kBuiltAtOnce) noexcept
      : left_(entries_and_rows) {}
  static OpeningRoom of(Ready ready) noexcept {
    return OpeningRoom(ready == Ready::kIndexesBuilt ? std::numeric_limits<std::uint64_t>::max()
                                                     : kBuiltAtOnce);
  }

  /// Asked of one table after the other.
  bool takes(const Table::Unbuilt& unbuilt) noexcept {
    const std::uint64_t cost = unbuilt.entries + unbuilt.rows;
    if (cost > left_) return false;
    left_ -= cost;
    return true;
  }

 private:
  std::uint64_t left_;
};

}  // namespace flugs::engine
