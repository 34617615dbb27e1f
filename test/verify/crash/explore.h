#pragma once

#include "verify/crash/exploration/exploration.h"

namespace flugs::crash {

/// Explores and prints what was checked. If something was found, fails the test case with a line
/// that replays it. FLUGS_CRASH_STATES=10 explores ten times as much.
void must_hold(Exploration exploration);

}  // namespace flugs::crash
