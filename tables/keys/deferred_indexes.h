#pragma once

#include <bit>
#include <cstdint>

namespace flugs::engine {

/// Which of a table's indexes in DRAM opening defers, and what it costs to make them.
struct DeferredIndexes final {
  enum Kind : std::uint8_t {
    kNoIndexes = 0,
    kHashIndexes = 1,  ///< of keys
    kDictionaryIndexes = 2,
    kOrderedIndexes = 4,  ///< of keys
  };
  static constexpr std::uint8_t kKeyIndexes = kHashIndexes | kOrderedIndexes;
  static constexpr std::uint8_t kAllIndexes = kKeyIndexes | kDictionaryIndexes;

  std::uint8_t indexes = kNoIndexes;
  std::uint64_t entries = 0;  ///< of dictionaries
  std::uint64_t rows = 0;     ///< positions, if indexes of keys have to be made
  /// Entries and positions to go through; positions count for hash indexes and again for ordered
  /// ones.
  std::uint64_t steps() const noexcept {
    return entries +
           rows * static_cast<std::uint64_t>(std::popcount<unsigned>(indexes & kKeyIndexes));
  }
};

}  // namespace flugs::engine
