#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace flugs::columns {

/// Gives bits of a row to cells, in words from `first_word` on. No cell of up to 64 bits straddles
/// a word, and few bits are left over: each cell goes to the begun word that it leaves with the
/// fewest bits.
class WordPacker {
 public:
  explicit WordPacker(std::size_t first_word) : used_(first_word, 64), first_free_(first_word) {}

  /// The position of the bits, from the beginning of the row.
  std::uint32_t place(std::uint32_t bits) {
    FLUGS_DCHECK(bits != 0 && (bits <= 64 || bits % 64 == 0));
    if (bits > 64) {
      used_.insert(used_.end(), bits / 64, 64);
      return static_cast<std::uint32_t>((used_.size() - bits / 64) * 64);
    }
    while (first_free_ < used_.size() && used_[first_free_] == 64) ++first_free_;
    std::size_t best = used_.size();
    for (std::size_t word = first_free_; word < used_.size(); ++word)
      if (used_[word] + bits <= 64 && (best == used_.size() || used_[word] > used_[best]))
        best = word;
    if (best == used_.size()) used_.push_back(0);
    const auto at = static_cast<std::uint32_t>(best * 64 + used_[best]);
    used_[best] += bits;
    FLUGS_DCHECK(used_[best] <= 64);
    return at;
  }
  /// Bytes of the row up to the last word that was given.
  std::uint32_t bytes() const noexcept { return static_cast<std::uint32_t>(used_.size() * 8); }

 private:
  std::vector<std::uint32_t> used_;  // bits of each word
  std::size_t first_free_;           // words before it are full
};

}  // namespace flugs::columns
