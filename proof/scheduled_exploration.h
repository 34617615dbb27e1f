#pragma once

#include "proof/exploration.h"

namespace flugs::proof {

/// Explores a protocol of several threads: a database and a run of its own for each schedule, first
/// the one without a switch, then in round 0 all with one and drawn ones in turns, in other rounds
/// drawn ones. What the threads do is drawn as well in two of four rounds. With a schedule
/// in the exploration only that one. Crash points begin at the first switch: before it, the run is
/// that of another schedule.
ExplorationResult explore_schedules(const Exploration& exploration, const Protocol& protocol,
                                    const Mutation& mutation);

}  // namespace flugs::proof
