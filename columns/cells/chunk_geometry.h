#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace flugs::columns {

/// Finds the chunk of an element in a growing array. The first chunk holds 2^first elements, and
/// each further one as many as all before it, up to 2^largest; from then on all hold 2^largest. So
/// small arrays stay small, and large ones have few chunks.
struct ChunkGeometry {
  unsigned first_log2;
  unsigned largest_log2;

  constexpr std::size_t chunk_of(std::uint32_t element) const noexcept {
    if ((element >> largest_log2) != 0)
      return largest_log2 - first_log2 + (element >> largest_log2);
    if ((element >> first_log2) == 0) return 0;
    return static_cast<std::size_t>(std::bit_width(element)) - first_log2;
  }
  /// Also the number of elements in all chunks before.
  constexpr std::uint64_t first_of(std::size_t chunk) const noexcept {
    if (chunk == 0) return 0;
    if (chunk <= largest_log2 - first_log2) return std::uint64_t{1} << (first_log2 + chunk - 1);
    return std::uint64_t{chunk - (largest_log2 - first_log2)} << largest_log2;
  }
  constexpr std::uint64_t elements_in(std::size_t chunk) const noexcept {
    return first_of(chunk + 1) - first_of(chunk);
  }
};
// Both ends of each chunk lie in it, where chunks double and where they no longer do.
static_assert(ChunkGeometry{2, 4}.chunk_of(3) == 0 && ChunkGeometry{2, 4}.chunk_of(4) == 1);
static_assert(ChunkGeometry{2, 4}.chunk_of(15) == 2 && ChunkGeometry{2, 4}.first_of(3) == 16);
static_assert(ChunkGeometry{2, 4}.chunk_of(16) == 3 && ChunkGeometry{2, 4}.elements_in(3) == 16);
static_assert(ChunkGeometry{2, 4}.chunk_of(32) == 4 && ChunkGeometry{2, 4}.first_of(4) == 32);

}  // namespace flugs::columns
