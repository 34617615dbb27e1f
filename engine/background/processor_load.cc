#include "engine/background/processor_load.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace flugs::engine {

// The first line: "cpu  user nice system idle iowait irq softirq steal guest guest_nice". The time
// of guests is already in user and nice.
std::optional<ProcessorTimes> parse_processor_times(std::string_view stat) noexcept {
  constexpr std::string_view kHead = "cpu ";
  constexpr int kFields = 8;
  constexpr int kIdle = 3;
  constexpr int kWaiting = 4;
  if (!stat.starts_with(kHead)) return std::nullopt;
  const char* at = stat.data() + kHead.size();
  const char* end = stat.data() + stat.size();
  ProcessorTimes times;
  for (int field = 0; field < kFields; ++field) {
    while (at != end && *at == ' ') ++at;
    std::uint64_t ticks = 0;
    const auto [next, error] = std::from_chars(at, end, ticks);
    if (error != std::errc{}) return std::nullopt;
    at = next;
    times.all += ticks;
    if (field == kIdle || field == kWaiting) times.idle += ticks;
  }
  return times;
}

std::optional<ProcessorTimes> processor_times() noexcept {
  const int file = ::open("/proc/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char text[512];
  const ssize_t bytes = ::read(file, text, sizeof text);
  ::close(file);
  if (bytes <= 0) return std::nullopt;
  return parse_processor_times({text, static_cast<std::size_t>(bytes)});
}

std::optional<std::uint32_t> idle_percent(const ProcessorTimes& before,
                                          const ProcessorTimes& after) noexcept {
  if (after.all <= before.all || after.idle < before.idle) return std::nullopt;
  const std::uint64_t all = after.all - before.all;
  return static_cast<std::uint32_t>(std::min(all, after.idle - before.idle) * 100 / all);
}

}  // namespace flugs::engine
