#pragma once

#include <cstdint>
#include <limits>

#include "flugs/database.h"
#include "tables/keys/deferred_indexes.h"

namespace flugs::engine {

/// Decides which tables' indexes opening makes itself, before it returns. With Ready::kFirstAnswer
/// these are the indexes that take almost no time, so that most databases are opened with nothing
/// left to do.
class OpeningBudget {
 public:
  /// Entries and rows that opening takes, of all tables: a millisecond or two.
  static constexpr std::uint64_t kBuiltAtOnce = 1u << 14;

  explicit OpeningBudget(std::uint64_t entries_and_rows = kBuiltAtOnce) noexcept
      : left_(entries_and_rows), is_empty_(entries_and_rows == 0) {}
  static OpeningBudget of(Ready ready) noexcept {
    return OpeningBudget(ready == Ready::kIndexesBuilt ? std::numeric_limits<std::uint64_t>::max()
                                                       : kBuiltAtOnce);
  }

  /// Whether opening makes these indexes itself; asked for one table after the other.
  bool takes(const DeferredIndexes& deferred) noexcept {
    const std::uint64_t cost = deferred.entries + deferred.rows;
    if (cost > left_) return false;
    left_ -= cost;
    return true;
  }

  /// Opening makes no indexes; for crash tests, which must not wait.
  bool is_empty() const noexcept { return is_empty_; }
  /// Whether opening enters the hints of this many dictionary entries, of all tables; asked after
  /// takes.
  bool takes_hints(std::uint64_t entries) const noexcept { return entries <= left_ / kHintCost; }

 private:
  // A hint costs as much as this many entries of an index in DRAM: each is on pages not touched
  // before.
  static constexpr std::uint64_t kHintCost = 128;

  std::uint64_t left_;
  bool is_empty_;
};

}  // namespace flugs::engine
