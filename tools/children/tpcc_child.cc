#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "bench/tpcc/tpcc_client.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_witness.h"
#include "tools/children/memory_child.h"
#include "tools/children/tpcc_kill_loop.h"
#include "tools/support/child_process.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

/// Users work until the process is killed, or a transaction fails, which none may.
int run_users(Database& database, bench::TpccWitness& witness) {
  const bench::TpccWitness::Plan& plan = witness.plan();
  const Result<bench::TpccTables> tables = bench::find_tpcc_tables(database);
  if (!tables.ok()) return could_not_run(tables.status());
  CommitOptions commit;
  if (plan.process_crash_only) commit.durability = Durability::kProcessCrash;
  constexpr double kForEver = 1e9;
  bench::TpccRunOptions options;
  options.population = plan.population;
  options.users = plan.users;
  options.loop.seconds = kForEver;
  options.seed = plan.seed + witness.life().load();
  options.witness = &witness;
  options.loop.sampling_begins = [&witness] { witness.is_running().store(1); };
  const Result<bench::TpccRunResult> result = bench::run_tpcc(
      [&](std::uint32_t) -> Result<std::unique_ptr<bench::TpccSession>> {
        Result<std::unique_ptr<bench::TpccClient>> client =
            bench::TpccClient::make(database, *tables, Isolation::kSnapshot, commit);
        if (!client.ok()) return std::move(client).status();
        return std::unique_ptr<bench::TpccSession>(*std::move(client));
      },
      options);
  fmt::print(stderr, "flugs: a transaction failed that must not fail: {}\n",
             result.status().to_string());
  return kExitCheckFailed;
}

int run_tpcc_child(const std::string& path) {
  Result<bench::TpccWitness> witness = bench::TpccWitness::open(path);
  if (!witness.ok()) return could_not_run(witness.status());
  const bench::TpccWitness::Plan& plan = witness->plan();
  witness->life().fetch_add(1);
  OpenOptions options =
      tpcc_open_options(plan.pool_path, OpenMode::kOpen, plan.users,
                        plan.indexes_in_dram ? IndexPlace::kDram : IndexPlace::kPool);
  options.crash_ring = plan.process_crash_only;
  if (plan.merge_interval_ms != 0)
    options.merge_policy =
        policy_of({.mode = TatpMerge::Mode::kAuto, .interval_ms = plan.merge_interval_ms});
  Result<Database> database = Database::open(options);
  if (!database.ok()) return could_not_run(database.status());
  return run_users(*database, *witness);
}

}  // namespace

void add_tpcc_child(CLI::App& app, Action& action) {
  add_memory_child(app, action, "tpcc-child", "A process of kill-loop", run_tpcc_child);
}

}  // namespace flugs::tools
