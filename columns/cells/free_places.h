#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "flugs/function_ref.h"

namespace flugs::columns {

/// The sizes of places, and their numbers. Up to `kFineBytesMax` every multiple of the grain is a
/// size; beyond, each doubling has 16 sizes.
namespace text_place {

inline constexpr std::uint64_t kGrainBytes = 8;
inline constexpr std::uint64_t kBytesMin = 16;
inline constexpr std::uint64_t kFineBytesMax = 1024;
inline constexpr std::size_t kFineSizes = kFineBytesMax / kGrainBytes;
inline constexpr unsigned kFineLog2 = std::bit_width(kFineBytesMax) - 1;
inline constexpr unsigned kStepsLog2 = 4;
inline constexpr std::size_t kSizes = kFineSizes + ((33 - kFineLog2) << kStepsLog2) + 1;
static_assert(std::has_single_bit(kFineBytesMax));

/// The distance of the sizes in the doubling that begins at or below `bytes`.
constexpr std::uint64_t step_above(std::uint64_t bytes) noexcept {
  return std::uint64_t{1} << (static_cast<unsigned>(std::bit_width(bytes)) - 1 - kStepsLog2);
}
/// The size of the place for a text of `bytes`, more than 8 and at most 2^32.
constexpr std::uint64_t bytes_for(std::uint64_t bytes) noexcept {
  const std::uint64_t step = bytes <= kFineBytesMax ? kGrainBytes : step_above(bytes - 1);
  return (bytes + step - 1) / step * step;
}
/// The largest size up to `bytes`.
constexpr std::uint64_t size_within(std::uint64_t bytes) noexcept {
  const std::uint64_t step = bytes <= kFineBytesMax ? kGrainBytes : step_above(bytes);
  return bytes / step * step;
}
constexpr std::size_t number_of(std::uint64_t size) noexcept {
  if (size <= kFineBytesMax) return size / kGrainBytes;
  const unsigned log2 = static_cast<unsigned>(std::bit_width(size - 1)) - 1;
  return kFineSizes + (std::size_t{log2 - kFineLog2} << kStepsLog2) +
         ((size - (std::uint64_t{1} << log2)) >> (log2 - kStepsLog2));
}
constexpr std::uint64_t size_of(std::size_t number) noexcept {
  if (number <= kFineSizes) return number * kGrainBytes;
  const std::size_t behind = number - kFineSizes - 1;
  const unsigned log2 = static_cast<unsigned>(behind >> kStepsLog2) + kFineLog2;
  const std::uint64_t steps = (behind & ((1u << kStepsLog2) - 1)) + 1;
  return (std::uint64_t{1} << log2) + (steps << (log2 - kStepsLog2));
}

static_assert(bytes_for(16) == 16 && bytes_for(17) == 24 && bytes_for(1024) == 1024);
static_assert(bytes_for(1025) == 1088 && bytes_for(2048) == 2048 && bytes_for(2049) == 2176);
static_assert(size_within(1087) == 1024 && size_within(2049) == 2048);
static_assert(size_of(number_of(1024)) == 1024 && size_of(number_of(1088)) == 1088);
static_assert(size_of(number_of(2048)) == 2048 && size_of(number_of(2176)) == 2176);
static_assert(number_of(1088) == number_of(1024) + 1 && number_of(2176) == number_of(2048) + 1);
static_assert(number_of(std::uint64_t{1} << 32) < kSizes);

}  // namespace text_place

/// Places of a heap that no text has any more, by size, in DRAM (decision 0038).
///
/// Every text has a place of a size that depends on its length alone, so that its cell says how
/// much comes back. There are few sizes: texts of similar lengths use each other's places.
///
/// Invariants: a place begins at a multiple of the grain. No two places overlap.
/// Thread-safety: one thread at a time.
class FreePlaces final {
 public:
  bool empty() const noexcept { return bytes_ == 0; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// A place of the size `wanted`, as its offset; 0: there is none. A larger place is divided only
  /// if another text as long fits into the rest: smaller rests would pile up, and no text would
  /// want them.
  std::uint64_t take(std::uint64_t wanted) noexcept;
  /// Adds a place, or the rest of a chunk: any multiple of the grain. Without memory for it the
  /// place is lost until the column begins anew.
  void add(std::uint64_t offset, std::uint64_t bytes) noexcept;
  void clear() noexcept;
  /// Drops the places for which `is_gone`.
  void remove_if(FunctionRef<bool(std::uint64_t offset)> is_gone) noexcept;

 private:
  bool has(std::size_t number) const noexcept {
    return (has_places_[number / 64] >> (number % 64) & 1) != 0;
  }
  /// The number of the first size from `number` on that has places; text_place::kSizes: none.
  std::size_t next_with_places(std::size_t number) const noexcept;
  std::uint64_t take_of(std::size_t number) noexcept;
  bool put(std::uint64_t offset, std::uint64_t size) noexcept;

  std::vector<std::vector<std::uint64_t>> places_;  // offsets, by number of the size
  std::array<std::uint64_t, text_place::kSizes / 64 + 1> has_places_{};
  std::size_t numbers_end_ = 0;  // above the numbers of all sizes with places
  std::uint64_t bytes_ = 0;
};

}  // namespace flugs::columns
