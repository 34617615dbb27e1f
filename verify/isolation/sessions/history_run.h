#pragma once

#include <memory>
#include <string>

#include "flugs/database.h"
#include "verify/isolation/checker/checker.h"
#include "verify/isolation/checker/history.h"
#include "verify/isolation/sessions/history_plan.h"

namespace flugs::sessions {

/// How a plan's pool is opened.
OpenOptions history_open_options(const HistoryPlan& plan);

/// A run that is over.
struct HistoryRun {
  isolation::History history;
  std::string medium;
  std::string guarantee;
  std::uint64_t merges = 0;  ///< that changed something
  std::uint32_t kills = 0;
};

/// Finishes a run in an open database, after the users have ended: reads everything, and collects
/// the logs.
Result<HistoryRun> finish_history(Database& database, const HistoryMemory& memory);

/// Makes the pool of the plan, which must not exist, with its tables. Fails like the engine.
Result<Database> create_history_pool(const HistoryPlan& plan);

/// Runs all users, each in a thread, and a thread that merges, until each user has done its share.
/// Fails with the first wrong answer of the engine.
Status run_history_users(Database& database, const HistoryMemory& memory);

/// A whole run in this process, without kills: makes the pool of the plan, which must not exist,
/// and leaves it there. Fails like create_history_pool and run_history_users.
Result<HistoryRun> run_history(const HistoryPlan& plan);

/// Makes a plan break a rule. All sessions run in one thread, without merges: so each run is the
/// same, and a reader of another transaction's writes does not race with them.
void break_rule(HistoryPlan& plan, BrokenRule rule) noexcept;

/// Runs the plan with a broken rule, and returns the checker's report, which should not be empty.
Result<isolation::Report> check_broken_rule(HistoryPlan plan, BrokenRule rule);

}  // namespace flugs::sessions
