#pragma once

#include "proof/exploration.h"

namespace flugs::proof {

/// Explores and prints what was checked. If something was found, fails the test case with a line
/// that replays it. FLUGS_CRASH_STATES=10 explores ten times as much.
void must_hold(Exploration exploration);

}  // namespace flugs::proof
