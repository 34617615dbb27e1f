#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/status.h"

namespace flugs::crash {

/// At the switch point with that number, counted over all threads, the turn goes to `thread`.
struct ScheduledSwitch {
  std::uint32_t point = 0;
  std::uint32_t thread = 0;
  friend bool operator==(const ScheduledSwitch&, const ScheduledSwitch&) = default;
};

/// Which of several threads runs when: a list of switches away from threads that could run on, by
/// ascending points. Between switches a thread runs until it ends or waits, and then the next one
/// in order runs. Thread 0 begins.
using Schedule = std::vector<ScheduledSwitch>;

/// "17>2.43>0"; "none".
std::string to_string(const Schedule& schedule);
/// Fails with kInvalidArgument.
Result<Schedule> read_schedule(std::string_view words);

/// The switch points of a run: which thread had the turn, and whether it was about to flush.
struct SwitchPoint {
  std::uint32_t thread = 0;
  bool is_flush = false;
};
using TurnOwners = std::vector<SwitchPoint>;

/// Gives, by `index`, all schedules with one switch of a run that had these turns without a switch:
/// one for each point and each other thread. Points at fences and between steps come first, then
/// those at flushes, each in an order that spreads over the run from the beginning.
Schedule one_switch(std::uint64_t index, const TurnOwners& turns, std::uint32_t threads);
/// Draws a schedule with 2 to 4 switches, or with many.
Schedule draw_schedule(std::uint64_t seed, std::uint32_t points, std::uint32_t threads);

/// The switch of the schedule from which on crash points are explored: before it, the run equals
/// many others.
std::size_t watched_from(const Schedule& schedule);

}  // namespace flugs::crash
