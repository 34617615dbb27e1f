#pragma once

#include <cstdint>

#include "verify/isolation/sessions/history_run.h"

namespace flugs::tools {

/// A run of a plan in processes of its own, each killed at a random moment, every eighth while it
/// opens the pool; the next one goes on with the history. The last does what is left.
/// Fails with: kCorrupt (a process ended by itself before its work was done), and as run_history.
Result<sessions::HistoryRun> run_history_with_kills(const sessions::HistoryPlan& plan,
                                                    std::uint32_t kills);

}  // namespace flugs::tools
