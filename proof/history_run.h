#pragma once

#include <memory>
#include <string>

#include "flugs/database.h"
#include "history/checker.h"
#include "history/history.h"
#include "proof/history_plan.h"

namespace flugs::proof {

/// How a plan's pool is opened.
OpenOptions history_open_options(const HistoryPlan& plan);

/// A run that is over.
struct HistoryRun {
  history::History history;
  std::string medium;
  std::string guarantee;
  std::uint64_t merges = 0;  ///< that changed something
  std::uint32_t kills = 0;
};

/// What is left to do when the users are done, in a database that is open: reads everything, and
/// collects the logs.
Result<HistoryRun> finish_history(Database& database, const HistoryMemory& memory);

/// Makes the pool of the plan, which must not exist, with its tables. Fails as the engine.
Result<Database> create_history_pool(const HistoryPlan& plan);

/// All users at work, a thread each, and one that merges, until each has done its share. Fails with
/// the first answer of the engine that must not be.
Status run_history_users(Database& database, const HistoryMemory& memory);

/// A whole run in this process, without kills: makes the pool of the plan, which must not exist,
/// and leaves it. Fails as create_history_pool and run_history_users.
Result<HistoryRun> run_history(const HistoryPlan& plan);

/// Has a plan break a rule, with all sessions in one thread and without merges: so the same happens
/// each time, and who reads what another transaction is writing does not race with it.
void break_rule(HistoryPlan& plan, BrokenRule rule) noexcept;

/// What the checker finds when a rule is broken: it should not be nothing.
Result<history::Report> check_broken_rule(HistoryPlan plan, BrokenRule rule);

}  // namespace flugs::proof
