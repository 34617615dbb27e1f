#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "pmem/space/extent_allocator.h"

namespace flugs::pmem {

/// The free pieces of a pool; neighbours are always merged. Every function is O(log pieces).
/// Thread-safety: none.
class FreeMap {
 public:
  /// Enters a piece. False, and no change, when part of it is already free.
  bool add(Extent piece);
  /// Takes `bytes` from the smallest piece that holds them; among equal ones, from the piece with
  /// the lowest offset. So large pieces stay large, and the end of the pool stays untouched.
  std::optional<Extent> take(std::uint64_t bytes);

  /// Where the first piece begins that holds `bytes`, if they then lie before `end`. O(pieces).
  std::optional<std::uint64_t> first_fit(std::uint64_t bytes, std::uint64_t end) const noexcept;
  /// Takes `bytes` from there.
  std::optional<Extent> take_below(std::uint64_t bytes, std::uint64_t end);
  /// Takes a part of a free piece. False, and no change, when it is not free as a whole.
  bool take_at(Extent part);
  /// The largest piece; 0 bytes: there is none.
  Extent largest() const noexcept {
    if (by_size_.empty()) return {};
    return {by_size_.rbegin()->second, by_size_.rbegin()->first};
  }
  /// The first piece that ends behind `offset`; 0 bytes: there is none.
  Extent first_from(std::uint64_t offset) const noexcept;

  /// Bytes of the piece that ends at `offset`, 0 when none does.
  std::uint64_t bytes_ending_at(std::uint64_t offset) const noexcept;

  std::uint64_t free_bytes() const noexcept { return free_bytes_; }
  /// The part of free_bytes that Reserve counts.
  std::uint64_t reservable_bytes() const noexcept { return reservable_bytes_; }
  std::uint64_t piece_count() const noexcept { return by_offset_.size(); }
  std::uint64_t largest_bytes() const noexcept {
    return by_size_.empty() ? 0 : by_size_.rbegin()->first;
  }

 private:
  void enter(Extent piece);
  void leave(std::map<std::uint64_t, std::uint64_t>::iterator piece);

  std::map<std::uint64_t, std::uint64_t> by_offset_;           // offset -> bytes
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // (bytes, offset)
  std::uint64_t free_bytes_ = 0;
  std::uint64_t reservable_bytes_ = 0;
};

}  // namespace flugs::pmem
