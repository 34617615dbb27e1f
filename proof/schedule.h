#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/status.h"

namespace flugs::proof {

/// At the switch point of that number, counted over all threads, the turn goes to `thread`.
struct ScheduledSwitch {
  std::uint32_t point = 0;
  std::uint32_t thread = 0;
  friend bool operator==(const ScheduledSwitch&, const ScheduledSwitch&) = default;
};

/// Which of several threads runs when, as the switches away from a thread that could run on, by
/// ascending points. Otherwise a thread runs until it ends or waits; then the next one in order
/// does. Thread 0 begins.
using Schedule = std::vector<ScheduledSwitch>;

/// "17>2.43>0"; "none".
std::string to_string(const Schedule& schedule);
/// Fails with kInvalidArgument.
Result<Schedule> read_schedule(std::string_view words);

/// All schedules with one switch, by `index`, in an order that spreads over the points from the
/// begin: `points * threads` of them, among them those to the thread that runs, which do nothing.
Schedule one_switch(std::uint64_t index, std::uint32_t points, std::uint32_t threads);
/// One with 2 to 4 switches, now and then with many.
Schedule draw_schedule(std::uint64_t seed, std::uint32_t points, std::uint32_t threads);

}  // namespace flugs::proof
