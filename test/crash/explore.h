#pragma once

#include "proof/exploration.h"

namespace flugs::proof {

/// Explores, prints what was checked, and fails the test case with a line that replays when
/// something was found. FLUGS_CRASH_STATES=10 explores ten times as much.
void must_hold(Exploration exploration);

}  // namespace flugs::proof
