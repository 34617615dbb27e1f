#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"

namespace flugs::columns {

/// For sums that 64 bits do not hold.
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

/// Codes packed LSB first, in blocks of 64 codes, 8 * bits bytes each, with 64 readable bytes
/// behind the last block. With 64 bits a code is the payload itself.
struct PackedCodes {
  const std::uint64_t* blocks = nullptr;
  unsigned bits = 0;  ///< is_code_width

  std::uint64_t mask() const noexcept {
    FLUGS_DCHECK(bits >= 1 && bits <= 64);
    return ~std::uint64_t{0} >> (64 - bits);
  }
  std::uint64_t operator[](std::size_t i) const noexcept {
    std::uint64_t window = 0;
    std::memcpy(&window, reinterpret_cast<const std::byte*>(blocks) + i * bits / 8, 8);
    return (window >> (i * bits % 8)) & mask();
  }
};

/// Widths for which every code lies within 8 bytes from the byte in which it begins. Two, four or
/// eight codes of up to 32, 16 or 8 bits also lie together within such a window. Widths of 31, 59,
/// 61, 62 and 63 bits do not have this property, and are rounded up.
constexpr bool is_code_width(unsigned bits) noexcept {
  return bits >= 1 && bits <= 64 && bits != 31 && bits != 59 && (bits <= 60 || bits == 64);
}
constexpr unsigned rounded_code_width(unsigned bits) noexcept {
  while (!is_code_width(bits)) ++bits;
  return bits;
}
static_assert(rounded_code_width(31) == 32 && rounded_code_width(59) == 60);
static_assert(rounded_code_width(61) == 64 && rounded_code_width(0) == 1);

struct CodeSum {
  UInt128 sum = 0;
  std::uint64_t not_zero = 0;  ///< number of codes that are not 0, if requested
};
/// See MainKernels::extremes; min > max: no codes.
struct CodeExtremes {
  std::uint64_t min = ~std::uint64_t{0};
  std::uint64_t max = 0;
};

/// The inner loops over packed codes, for one instruction set. They work on whole blocks: `count`
/// blocks from block `first` on. Masks have a word per block; null means that every bit is set.
struct MainKernels {
  const char* name;

  /// Codes as 32 bits (bits <= 32), none above `limit`.
  void (*codes)(PackedCodes codes, std::size_t first, std::size_t count, std::uint32_t limit,
                std::uint32_t* out);
  /// base + code, wrapping around.
  void (*values)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t base,
                 std::int64_t* out);
  /// entries[min(code, limit)] (bits <= 32).
  void (*decode)(PackedCodes codes, std::size_t first, std::size_t count,
                 const std::int64_t* entries, std::uint32_t limit, std::int64_t* out);
  /// mask &= (code - low <= high - low), or the opposite; differences are modulo 2^64 for 64 bits,
  /// otherwise low <= high < 2^bits.
  void (*filter)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
                 std::uint64_t high, bool outside, std::uint64_t* mask);
  /// mask &= bit min(code, limit) of `wanted`, limit / 64 + 1 words (bits <= 32).
  void (*members)(PackedCodes codes, std::size_t first, std::size_t count,
                  const std::uint64_t* wanted, std::uint32_t limit, std::uint64_t* mask);
  /// Sum of (code - origin) modulo 2^64, each as unsigned; origin is 0 for less than 64 bits.
  CodeSum (*sum)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
                 bool count_not_zero, const std::uint64_t* mask);
  /// The least (code - origin_of_min) and the greatest (code - origin_of_max), as unsigned, modulo
  /// some power of two that is at least 2^bits. So with origin_of_min 1, code 0 does not count.
  CodeExtremes (*extremes)(PackedCodes codes, std::size_t first, std::size_t count,
                           std::uint64_t origin_of_min, std::uint64_t origin_of_max,
                           const std::uint64_t* mask);
  /// values[i] = fill where bit i of the mask is clear; values need no alignment.
  void (*fill_clear)(const std::uint64_t* mask, std::size_t count, std::int64_t fill,
                     std::int64_t* values);
  /// Number of set bits.
  std::size_t (*bits_set)(const std::uint64_t* words, std::size_t count);
};

/// One per instruction set, each in its file.
const MainKernels& plain_kernels() noexcept;
const MainKernels& avx2_kernels() noexcept;
const MainKernels& avx512_kernels() noexcept;

/// Instruction sets, from the slowest to the fastest.
enum class KernelRoute : std::uint8_t { kPlain, kAvx2, kAvx512 };

/// The best route of this processor; FLUGS_KERNELS=plain, avx2 or avx512 in the environment asks
/// for a lower one.
KernelRoute kernel_route() noexcept;
/// For tests: makes kernels() return this route's from now on. False when the processor lacks it.
bool force_kernel_route(KernelRoute route) noexcept;

/// The kernels of the current route.
const MainKernels& kernels() noexcept;

}  // namespace flugs::columns
