#include "bench/clock.h"

#include <time.h>

#include <fstream>
#include <string>

namespace flugs::bench {

std::uint64_t monotonic_ns() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

namespace {

bool machine_has_constant_counter() {
#if defined(__x86_64__)
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.starts_with("flags"))
      return line.find(" constant_tsc") != std::string::npos &&
             line.find(" nonstop_tsc") != std::string::npos;
#endif
  return false;
}

}  // namespace

Ticks::Ticks() noexcept : counter_usable_(machine_has_constant_counter()) {
  if (!counter_usable_) return;
  const std::uint64_t ns_begin = monotonic_ns();
  const std::uint64_t ticks_begin = now();
  while (monotonic_ns() - ns_begin < 20'000'000) {
  }
  const std::uint64_t ns = monotonic_ns() - ns_begin;
  const std::uint64_t ticks = now() - ticks_begin;
  if (ticks == 0) {
    counter_usable_ = false;
    return;
  }
  ns_per_tick_scaled_ = static_cast<std::uint64_t>((static_cast<Wide>(ns) << 32) / ticks);
}

const Ticks& Ticks::instance() noexcept {
  static const Ticks ticks;
  return ticks;
}

}  // namespace flugs::bench
