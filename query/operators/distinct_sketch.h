#pragma once

#include <cstddef>
#include <cstdint>

#include "query/operators/value_list.h"

namespace flugs::query {

/// What approx_count_distinct keeps of a group: HyperLogLog with 4096 registers, of which each has
/// the largest rank of the hashes that it gets. While few registers have one, it is a sorted array
/// of these. The registers are the union of what was noted, in whatever order and parts. It lies in
/// a KeptMemory, and its entries or registers follow it.
struct DistinctSketch {
  static constexpr unsigned kIndexBits = 12;
  static constexpr std::size_t kRegisters = std::size_t{1} << kIndexBits;
  /// Ranks are 0 (nothing) to kRankMax.
  static constexpr unsigned kRankMax = 64 - kIndexBits + 1;

  std::uint32_t used;  ///< entries
  std::uint32_t room;  ///< for entries; 0: there are registers

  bool is_dense() const noexcept { return room == 0; }
  std::uint32_t* entries() noexcept { return reinterpret_cast<std::uint32_t*>(this + 1); }
  const std::uint32_t* entries() const noexcept {
    return reinterpret_cast<const std::uint32_t*>(this + 1);
  }
  std::uint8_t* registers() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
  const std::uint8_t* registers() const noexcept {
    return reinterpret_cast<const std::uint8_t*>(this + 1);
  }
};

/// Adds a value by its hash. Null: no value yet. Fails with kOutOfMemory.
void note_hash(DistinctSketch*& sketch, std::uint64_t hash, KeptMemory& memory);
/// Adds what another sketch, or null, has. `from` may become a part of `into`: it must not be
/// changed any more. To merge it again, also into another sketch of the same group, does no harm.
void merge_sketches(DistinctSketch* from, DistinctSketch*& into, KeptMemory& memory);
/// The number of different hashes, whose standard error is 1.04 / sqrt(kRegisters).
std::int64_t estimate_of(const DistinctSketch* sketch) noexcept;

}  // namespace flugs::query
