#pragma once

#include <cstdint>
#include <vector>

#include "base/check.h"

namespace flugs::query {

/// Numbers codes in the order in which they first come. A hash table with linear probing; it keeps
/// its memory when it is cleared.
///
/// Thread-safety: one thread.
class CodeMap {
 public:
  std::uint32_t size() const noexcept { return size_; }
  std::uint64_t bytes() const noexcept { return slots_.capacity() * sizeof(Slot); }

  /// The number of a code. `is_new`: it came for the first time, and has the number `size() - 1`.
  std::uint32_t number(std::uint32_t code, bool& is_new) {
    if (size_ * 2 >= slots_.size()) widen();
    Slot& slot = find(code);
    is_new = slot.number == 0;
    if (is_new) slot = {code, ++size_};
    return slot.number - 1;
  }
  void clear() noexcept {
    if (size_ != 0) slots_.assign(slots_.size(), Slot());
    size_ = 0;
  }

 private:
  /// `number` counts from 1; 0: a free slot.
  struct Slot {
    std::uint32_t code = 0;
    std::uint32_t number = 0;
  };

  Slot& find(std::uint32_t code) noexcept {
    FLUGS_DCHECK(!slots_.empty());
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = (code * std::uint64_t{0x9E3779B97F4A7C15}) >> 32 & mask;
    while (slots_[at].number != 0 && slots_[at].code != code) at = (at + 1) & mask;
    return slots_[at];
  }
  void widen() {
    constexpr std::size_t kFirst = 64;
    std::vector<Slot> former(slots_.empty() ? kFirst : slots_.size() * 4);
    former.swap(slots_);
    for (const Slot& slot : former)
      if (slot.number != 0) find(slot.code) = slot;
  }

  std::vector<Slot> slots_;
  std::uint32_t size_ = 0;
};

}  // namespace flugs::query
