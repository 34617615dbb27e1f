#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace flugs::engine {

/// Some chunks of a table, a bit for each.
class ChunkSet {
 public:
  ChunkSet() = default;
  explicit ChunkSet(std::span<const std::uint64_t> words) : words_(words.begin(), words.end()) {}

  bool has(std::size_t chunk) const noexcept {
    return chunk / 64 < words_.size() && ((words_[chunk / 64] >> (chunk % 64)) & 1) != 0;
  }
  void insert(std::size_t chunk) {
    if (chunk / 64 >= words_.size()) words_.resize(chunk / 64 + 1);
    words_[chunk / 64] |= std::uint64_t{1} << (chunk % 64);
  }
  void erase(std::size_t chunk) noexcept {
    if (chunk / 64 < words_.size()) words_[chunk / 64] &= ~(std::uint64_t{1} << (chunk % 64));
  }
  void unite(const ChunkSet& other) {
    words_.resize(std::max(words_.size(), other.words_.size()));
    for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
  }
  bool is_empty() const noexcept {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }
  bool overlaps(const ChunkSet& other) const noexcept {
    for (std::size_t i = 0; i < std::min(words_.size(), other.words_.size()); ++i)
      if ((words_[i] & other.words_[i]) != 0) return true;
    return false;
  }
  /// Bit i is chunk i; chunks behind the last word are not in the set.
  std::span<const std::uint64_t> words() const noexcept { return words_; }

 private:
  std::vector<std::uint64_t> words_;
};

}  // namespace flugs::engine
