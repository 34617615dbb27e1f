#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flugs::engine {

/// Time of all of the machine's processors since it was started, in ticks of the kernel.
struct ProcessorTimes {
  std::uint64_t idle = 0;  ///< nothing to run, waiting for a disk included
  std::uint64_t all = 0;
};

/// Parses the text of /proc/stat; empty when it is something else.
std::optional<ProcessorTimes> parse_processor_times(std::string_view stat) noexcept;
/// Nothing when the system does not tell.
std::optional<ProcessorTimes> processor_times() noexcept;
/// Nothing when no tick has passed.
std::optional<std::uint32_t> idle_percent(const ProcessorTimes& before,
                                          const ProcessorTimes& after) noexcept;

}  // namespace flugs::engine
