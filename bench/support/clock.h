#pragma once

#include <cstdint>
#include <string_view>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace flugs::bench {

/// CLOCK_MONOTONIC in nanoseconds: the same clock in every process of the machine.
std::uint64_t monotonic_ns() noexcept;
inline double seconds_since(std::uint64_t begin_ns) noexcept {
  return static_cast<double>(monotonic_ns() - begin_ns) * 1e-9;
}
inline double ms_since(std::uint64_t begin_ns) noexcept { return seconds_since(begin_ns) * 1e3; }

/// Processor time of the calling thread, nanoseconds.
std::uint64_t thread_cpu_ns() noexcept;
/// Processor time of all threads of this process, nanoseconds.
std::uint64_t process_cpu_ns() noexcept;
/// The same, split into what the process did itself and what the kernel did for it.
struct ProcessorTime {
  std::uint64_t user_ns = 0;
  std::uint64_t system_ns = 0;
};
ProcessorTime process_processor_time() noexcept;

/// The cheapest clock there is for timing single transactions: the time-stamp counter where the
/// machine says that it runs at a constant rate, else CLOCK_MONOTONIC.
class Ticks {
 public:
  /// Measures the counter's rate, about 1 ms, the first time that it is called.
  static const Ticks& instance() noexcept;

  std::uint64_t now() const noexcept {
#if defined(__x86_64__)
    if (counter_usable_) return __rdtsc();
#endif
    return monotonic_ns();
  }
  std::uint64_t to_ns(std::uint64_t ticks) const noexcept {
    return static_cast<std::uint64_t>((static_cast<Wide>(ticks) * ns_per_tick_scaled_) >> 32);
  }
  /// For reports: which clock it is.
  std::string_view name() const noexcept {
    return counter_usable_ ? "rdtsc, calibrated" : "clock_gettime";
  }

 private:
  __extension__ using Wide = unsigned __int128;

  Ticks() noexcept;

  bool counter_usable_ = false;
  std::uint64_t ns_per_tick_scaled_ = std::uint64_t{1} << 32;  ///< times 2^32
};

}  // namespace flugs::bench
