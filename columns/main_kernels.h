#pragma once

#include <cstddef>
#include <cstdint>

namespace flugs::columns {

/// For sums that 64 bits do not hold.
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

/// Codes packed LSB first, in blocks of 64 codes, 8 * bits bytes each; 64 readable bytes behind the
/// last block. With 64 bits they are what they are.
struct PackedCodes {
  const std::uint64_t* blocks = nullptr;
  unsigned bits = 0;  ///< 1 to 64
};

struct CodeSum {
  UInt128 sum = 0;
  std::uint64_t not_zero = 0;  ///< codes that are not 0
};
/// Relative to the `origin` given: empty when min > max.
struct CodeExtremes {
  std::uint64_t min = ~std::uint64_t{0};
  std::uint64_t max = 0;
};

/// The inner loops over packed codes, for one instruction set. All work on whole blocks: from
/// block `first` on, `count` of them. Masks have a word per block; null means every bit is set.
struct MainKernels {
  const char* name;

  /// Codes as 32 bits (bits <= 32), none above `limit`.
  void (*codes)(PackedCodes codes, std::size_t first, std::size_t count, std::uint32_t limit,
                std::uint32_t* out);
  /// base + code, wrapping around.
  void (*values)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t base,
                 std::uint64_t* out);
  /// entries[min(code, limit)] (bits <= 32).
  void (*decode)(PackedCodes codes, std::size_t first, std::size_t count,
                 const std::int64_t* entries, std::uint32_t limit, std::int64_t* out);
  /// mask &= (code - low <= high - low), or its contrary; differences are modulo 2^64 for 64 bits,
  /// otherwise low <= high < 2^bits.
  void (*filter)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t low,
                 std::uint64_t high, bool outside, std::uint64_t* mask);
  /// Sum of (code - origin) modulo 2^64, each taken as unsigned; origin is 0 for less than 64 bits.
  CodeSum (*sum)(PackedCodes codes, std::size_t first, std::size_t count, std::uint64_t origin,
                 const std::uint64_t* mask);
  /// The least (code - origin) and the greatest, modulo 2^bits, as unsigned.
  CodeExtremes (*extremes)(PackedCodes codes, std::size_t first, std::size_t count,
                           std::uint64_t origin, const std::uint64_t* mask);
};

/// Instruction sets, the better the later.
enum class KernelRoute : std::uint8_t { kPlain, kAvx2, kAvx512 };

/// The best route this processor has; FLUGS_KERNELS=plain, avx2 or avx512 in the environment asks
/// for less.
KernelRoute kernel_route() noexcept;
/// For tests: kernels() gives this route's from now on. False when the processor lacks it.
bool force_kernel_route(KernelRoute route) noexcept;

/// The kernels of the current route.
const MainKernels& kernels() noexcept;

}  // namespace flugs::columns
