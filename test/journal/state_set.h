#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace flugs::test {

/// A set of hashes, which are taken for what they are made of.
class StateSet {
 public:
  /// False: it was there.
  bool insert(std::uint64_t hash) {
    if (hash == 0) hash = 1;
    if (2 * size_ >= slots_.size()) grow();
    if (!put(hash)) return false;
    ++size_;
    return true;
  }
  void clear() {
    slots_.assign(kSlotsMin, 0);
    size_ = 0;
  }

 private:
  static constexpr std::size_t kSlotsMin = 1 << 14;

  bool put(std::uint64_t hash) {
    std::size_t at = hash % slots_.size();
    while (slots_[at] != 0 && slots_[at] != hash) at = (at + 1) % slots_.size();
    if (slots_[at] == hash) return false;
    slots_[at] = hash;
    return true;
  }
  void grow() {
    const std::vector<std::uint64_t> former = std::move(slots_);
    slots_.assign(2 * former.size(), 0);
    for (const std::uint64_t hash : former)
      if (hash != 0) put(hash);
  }

  std::vector<std::uint64_t> slots_ = std::vector<std::uint64_t>(kSlotsMin);
  std::size_t size_ = 0;
};

}  // namespace flugs::test
