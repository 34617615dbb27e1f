#include "mvcc/clock.h"

#include <cpuid.h>
#include <fmt/format.h>

#include <fstream>
#include <string>

namespace flugs::mvcc {

namespace {

constexpr const char* kClockSource =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

bool has_invariant_counter() noexcept {
  constexpr unsigned kPowerManagement = 0x80000007u;
  constexpr unsigned kExtended = 0x80000001u;
  constexpr unsigned kInvariant = 1u << 8;  // of kPowerManagement, EDX
  constexpr unsigned kRdtscp = 1u << 27;    // of kExtended, EDX
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid(kPowerManagement, &a, &b, &c, &d) == 0 || (d & kInvariant) == 0) return false;
  return __get_cpuid(kExtended, &a, &b, &c, &d) != 0 && (d & kRdtscp) != 0;
}

Status unusable(const std::string& why) {
  return Status(StatusCode::kInvalidArgument,
                "Tuning::clock: the processors' time-stamp counters cannot be used: " + why);
}

}  // namespace

Status Clock::check_processors() {
  if (!has_invariant_counter())
    return unusable("CPUID reports no invariant counter, or no RDTSCP instruction to read it");
  std::ifstream file(kClockSource);
  std::string source;
  if (!std::getline(file, source))
    return unusable(fmt::format("{} does not show whether the kernel trusts them", kClockSource));
  if (source != "tsc")
    return unusable(
        fmt::format("the kernel uses the clock source {} ({}), not tsc, so the counters of the "
                    "processors may differ",
                    source, kClockSource));
  return {};
}

}  // namespace flugs::mvcc
