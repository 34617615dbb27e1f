#include "pmem/latency.h"

#include <x86intrin.h>

#include <chrono>
#include <cstddef>
#include <memory>

namespace flugs::pmem {

namespace {

/// Ticks of the time-stamp counter per nanosecond; measured once, over 2 ms: two clock readings of
/// some 50 ns each make an error below 0.01 %.
double measure_ticks_per_ns() noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  const std::uint64_t ticks_begin = __rdtsc();
  while (Clock::now() - begin < std::chrono::milliseconds(2)) _mm_pause();
  const std::uint64_t ticks = __rdtsc() - ticks_begin;
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin);
  return static_cast<double>(ticks) / static_cast<double>(ns.count());
}

constexpr unsigned kLineBits = 6;
constexpr unsigned kSetBits = 18;  // 2^18 lines of 64 bytes: 16 MB
constexpr std::size_t kSetCount = std::size_t{1} << kSetBits;

}  // namespace

void spin_ns(std::uint64_t ns) noexcept {
  static const double ticks_per_ns = measure_ticks_per_ns();
  const std::uint64_t begin = __rdtsc();
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(ns) * ticks_per_ns);
  while (__rdtsc() - begin < wanted) _mm_pause();
}

bool model_cache_miss(const void* address) noexcept {
  // User addresses have 47 bits, so 23 are left for the tag; 0 marks an empty set.
  static thread_local const std::unique_ptr<std::uint32_t[]> tags(new std::uint32_t[kSetCount]());
  const std::uintptr_t line = reinterpret_cast<std::uintptr_t>(address) >> kLineBits;
  const auto tag = static_cast<std::uint32_t>((line >> kSetBits) + 1);
  std::uint32_t& set = tags[line & (kSetCount - 1)];
  if (set == tag) return false;
  set = tag;
  return true;
}

}  // namespace flugs::pmem
