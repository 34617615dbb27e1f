#pragma once

#include "verify/crash/exploration/exploration.h"

namespace flugs::crash {

/// Explores a protocol of several threads. Each schedule has a database and a run of its own. First
/// comes the schedule without a switch. In round 0 all schedules with one switch alternate with
/// drawn ones; other rounds have drawn ones only. In two of four rounds the threads' steps are
/// drawn as well. If the exploration has a schedule, only that one is explored. Crash points begin
/// at the first switch: before it, the run equals that of another schedule.
ExplorationResult explore_schedules(const Exploration& exploration, const Protocol& protocol,
                                    const Mutation& mutation);

}  // namespace flugs::crash
