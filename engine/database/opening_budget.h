#pragma once

#include <cstdint>
#include <limits>

#include "flugs/database.h"
#include "tables/keys/deferred_indexes.h"

namespace flugs::engine {

/// Which tables' indexes opening makes itself, before it returns: with Ready::kFirstAnswer those
/// that are made in no time, so that most databases are opened with nothing left to be done.
class OpeningBudget {
 public:
  /// Entries and rows, of all tables: a millisecond or two.
  static constexpr std::uint64_t kBuiltAtOnce = 1u << 14;

  explicit OpeningBudget(std::uint64_t entries_and_rows = kBuiltAtOnce) noexcept
      : left_(entries_and_rows), is_empty_(entries_and_rows == 0) {}
  static OpeningBudget of(Ready ready) noexcept {
    return OpeningBudget(ready == Ready::kIndexesBuilt ? std::numeric_limits<std::uint64_t>::max()
                                                       : kBuiltAtOnce);
  }

  /// Asked of one table after the other.
  bool takes(const DeferredIndexes& unbuilt) noexcept {
    const std::uint64_t cost = unbuilt.entries + unbuilt.rows;
    if (cost > left_) return false;
    left_ -= cost;
    return true;
  }

  /// Nothing is taken; crash tests wait for nobody.
  bool is_empty() const noexcept { return is_empty_; }
  /// Asked of all tables' dictionary entries that may lack hints, after that.
  bool takes_hints(std::uint64_t entries) const noexcept { return entries <= left_ / kHintCost; }

 private:
  // As dear as so many entries of an index in DRAM: each is on pages that nobody has touched.
  static constexpr std::uint64_t kHintCost = 128;

  std::uint64_t left_;
  bool is_empty_;
};

}  // namespace flugs::engine
