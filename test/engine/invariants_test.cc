// The checks of engine/ fire.

#include <memory>
#include <vector>

#include "engine/background/event_queue.h"
#include "engine/background/merger.h"
#include "engine/background/sweeper.h"
#include "engine/database/background_threads.h"
#include "engine/database/database_access.h"
#include "engine/database/durable_tokens.h"
#include "engine/database/hint_keeper.h"
#include "engine/database/opening.h"
#include "engine/database/reclaim_rows.h"
#include "engine/database/transaction_watch.h"
#include "engine/merge/table_merge.h"
#include "test/support/check_fires.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

namespace {

/// A database with one table, and what it is made of.
struct OneTable {
  OneTable() {
    TableSchema schema;
    schema.name = "t";
    schema.columns = {{"a", Type::kInt64}};
    id = must(database->create_table(schema));
  }
  engine::DatabaseCore& core() { return engine::DatabaseAccess::core(*database); }
  engine::Table& table() { return *core().table(id); }
  mvcc::TransactionSlots& slots() { return core().transaction_manager().slots(); }

  TemporaryDatabase database;
  TableId id;
};

}  // namespace

TEST_CASE("the checks of an open database fire", "[engine]") {
  using namespace engine;
  FLUGS_CHECK_FIRES("core != nullptr", DatabaseAccess::wrap(nullptr));
  OneTable of;
  FLUGS_CHECK_FIRES("is_left()", of.core().end_left_open([] {}));
  FLUGS_CHECK_FIRES("core->has_open_transactions()",
                    DatabaseCore::leave_to_transactions(std::unique_ptr<DatabaseCore>(&of.core())));
  const OpenOptions options;
  FLUGS_CHECK_FIRES("merger_ != nullptr", BackgroundThreads(of.core().pool(), options).merger());
  FLUGS_CHECK_FIRES("interval.count() > 0",
                    HintKeeper(of.core().catalog(), of.core().pool(), {}).is_running());
  FLUGS_CHECK_FIRES("table != nullptr", of.core().catalog().add_loaded(nullptr));
  if (!kHasDebugChecks) return;
  FLUGS_CHECK_FIRES("opening != 0", DurableTokens(of.core().pool(), 0).now());
}

TEST_CASE("the checks of an opening fire", "[engine]") {
  using namespace engine;
  OneTable of;
  const OpenOptions options;
  RecoveryReport report;
  recovery::Phases phases(report, 1, {});
  Opening opening(of.core().pool(), options, of.core().transaction_manager(), of.core().catalog(),
                  phases, report, OpeningBudget());
  FLUGS_CHECK_FIRES("catalog_.all().empty()", opening.create());
  FLUGS_CHECK_FIRES("found_words_ == nullptr", opening.recover());
}

TEST_CASE("the checks of transactions' ends fire", "[engine]") {
  using namespace engine;
  OneTable of;
  TransactionContext context;
  RowReclaimer reclaimer(of.slots(), of.core().pool().allocator());
  FLUGS_CHECK_FIRES("context.slot != nullptr", reclaimer.reclaim_all(context));
  FLUGS_CHECK_FIRES("contexts.size() == seen_.size()", TransactionWatch(1).look({}, of.slots()));
}

TEST_CASE("the checks of background work fire", "[engine]") {
  using namespace engine;
  OneTable of;
  Mutex& ddl_mutex = of.core().catalog().ddl_mutex();
  EventQueue events({});
  MergeOptions options;
  options.dead_percent = 0;
  const auto merge = [&] {
    TableMerge(of.core().pool(), of.slots(), of.table(), ddl_mutex, options).forget_reads();
  };
  FLUGS_CHECK_FIRES("options.dead_percent >= 1", merge());
  options = {};
  options.waste_percent = 101;
  FLUGS_CHECK_FIRES("options.waste_percent <= 100", merge());
  FLUGS_CHECK_FIRES("std::ranges::count", Sweeper({nullptr}, events).is_running());
  Merger merger(of.core().pool(), of.slots(), ddl_mutex, events, [] {}, 0);
  MergePolicy policy;
  policy.automatic = false;
  policy.idle_percent = 101;
  FLUGS_CHECK_FIRES("MergeRecord::check(policy).ok()", merger.watch(of.table(), policy));
  if (!kHasDebugChecks) return;
  policy.idle_percent = 100;
  merger.watch(of.table(), policy);
  FLUGS_CHECK_FIRES("watched_.end()", merger.watch(of.table(), policy));
}

}  // namespace flugs::test
