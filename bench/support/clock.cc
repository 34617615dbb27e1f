#include "bench/support/clock.h"

#include <sys/resource.h>
#include <time.h>

#include <fstream>
#include <string>

namespace flugs::bench {

namespace {

std::uint64_t read_clock(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }

std::uint64_t thread_cpu_ns() noexcept { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

std::uint64_t process_cpu_ns() noexcept { return read_clock(CLOCK_PROCESS_CPUTIME_ID); }

ProcessorTime process_processor_time() noexcept {
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) != 0) return {};
  const auto ns = [](const timeval& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000u +
           static_cast<std::uint64_t>(time.tv_usec) * 1'000u;
  };
  return {ns(usage.ru_utime), ns(usage.ru_stime)};
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

/// Both clocks at one moment, as exactly as a few attempts allow.
struct Moment {
  std::uint64_t ns = 0;
  std::uint64_t ticks = 0;
};

Moment read_both(const Ticks& clock) {
  Moment best;
  std::uint64_t narrowest = ~std::uint64_t{0};
  for (int attempt = 0; attempt < 10; ++attempt) {
    const std::uint64_t before = clock.now();
    const std::uint64_t ns = monotonic_ns();
    const std::uint64_t after = clock.now();
    if (after - before >= narrowest) continue;
    narrowest = after - before;
    best = {ns, before + narrowest / 2};
  }
  return best;
}

}  // namespace

Ticks::Ticks() noexcept : counter_usable_(machine_has_constant_counter()) {
  if (!counter_usable_) return;
  // 1 ms: reading both takes some 50 ns, so the rate is right to a ten-thousandth.
  const Moment begin = read_both(*this);
  while (monotonic_ns() - begin.ns < 1'000'000) {
  }
  const Moment end = read_both(*this);
  if (end.ticks <= begin.ticks) {
    counter_usable_ = false;
    return;
  }
  ns_per_tick_scaled_ = static_cast<std::uint64_t>((static_cast<Wide>(end.ns - begin.ns) << 32) /
                                                   (end.ticks - begin.ticks));
}

const Ticks& Ticks::instance() noexcept {
  static const Ticks ticks;
  return ticks;
}

}  // namespace flugs::bench
