#pragma once

#include <atomic>
#include <cstdint>

#include "flugs/value.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// Where the row of a key may be that is one whole number. If rows were inserted in the order of
/// their keys, each row id is its key plus the same distance. Then a look-up needs no index, whose
/// line is a cache miss. A guess is as good as a hint: the row decides.
///
/// Look-ups teach the distance, by few of the rows that they find: the word is read by all threads,
/// so it must rarely change. A guess is made after several of these rows were at that distance.
///
/// Thread-safety: any thread. Two that learn at once may lose what one has learnt.
class RowGuess {
 public:
  /// One row in kLearnt teaches the distance. The ids of these rows follow no pattern, because a
  /// table may have one row in each page at the distance and no other.
  static constexpr std::uint32_t kLearnt = 1024;
  static bool is_learnt(std::uint32_t row) noexcept { return number_of(row) < kNumbers; }
  /// Before a guess is made, these rows at the distance must outnumber the others by kTrustNeeded.
  static constexpr std::uint64_t kTrustNeeded = 3;
  static constexpr std::uint64_t kTrustMax = 7;

  static bool is_for(const Value& key) noexcept {
    return key.type() == Type::kInt64 || key.type() == Type::kInt32;
  }
  /// kNoRow: no guess. The row need not exist. The key is not NULL.
  std::uint32_t row_of(const Value& key) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    if (trust_of(word) < kTrustNeeded || !is_for(key)) return kNoRow;
    return static_cast<std::uint32_t>(key.raw()) + distance_of(word);
  }
  /// A look-up has found `row`, by a guess or not.
  void learn(const Value& key, std::uint32_t row) const noexcept {
    if (__builtin_expect(is_learnt(row), 0) && is_for(key))
      learn_distance(row - static_cast<std::uint32_t>(key.raw()), number_of(row));
  }

 private:
  // The distance (32 bits), the trust in it (4), and the number of the row that was learnt from
  // last (28): no row counts twice in sequence, so that one row alone makes no guess.
  static constexpr int kTrustShift = 32;
  static constexpr int kLastShift = 36;
  static constexpr std::uint32_t kNumbers = 0xFFFFFFFFu / kLearnt + 1;
  /// A bijection of row ids: a product with an odd number, 2^32 by the golden ratio.
  static constexpr std::uint32_t number_of(std::uint32_t row) noexcept { return row * 0x9E3779B1u; }
  static std::uint32_t distance_of(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(word);
  }
  static std::uint64_t trust_of(std::uint64_t word) noexcept { return word >> kTrustShift & 15; }

  void learn_distance(std::uint32_t distance, std::uint64_t number) const noexcept {
    const std::uint64_t word = word_.load(std::memory_order_relaxed);
    std::uint64_t trust = trust_of(word);
    const bool is_same = distance == distance_of(word);
    if (word >> kLastShift == number + 1 || (is_same && trust == kTrustMax)) return;
    if (!is_same && trust != 0)
      distance = distance_of(word), --trust;
    else
      ++trust;
    word_.store((number + 1) << kLastShift | trust << kTrustShift | distance,
                std::memory_order_relaxed);
  }

  // On a line of its own: what look-ups read beside it never changes.
  alignas(64) mutable std::atomic<std::uint64_t> word_{0};
  static_assert(kNumbers < std::uint64_t{1} << (64 - kLastShift));
  static_assert(kTrustMax < 16);
};

}  // namespace flugs::engine
