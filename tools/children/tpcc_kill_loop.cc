#include "tools/children/tpcc_kill_loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <thread>
#include <utility>

#include "bench/support/environment.h"
#include "bench/support/random.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_promises.h"
#include "bench/tpcc/tpcc_reader.h"
#include "flugs/try.h"
#include "tools/report/tpcc_report.h"
#include "tools/support/child_process.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

/// Orders only grow in number: a new population after as many kills keeps the pool small.
constexpr std::uint32_t kRoundsPerPool = 40;
/// In one round of this many the whole pool is verified, or a second kill comes while the pool is
/// being opened after the first.
constexpr std::uint32_t kTpccVerifyEvery = 20;
constexpr std::uint32_t kTpccSecondKillEvery = 4;
constexpr std::uint32_t kTpccEarlyUsMax = 30'000;
constexpr std::uint64_t kTpccPoolBytesWanted = std::uint64_t{1} << 30;
constexpr std::uint64_t kTpccWritesPerMsMax = 200;  // of one user

struct TpccKillFigures {
  std::uint32_t kills = 0;
  std::uint32_t pools = 0;
  std::uint64_t audited = 0;
  std::uint64_t completed = 0;
  std::uint64_t lost = 0;
  std::uint64_t failures = 0;
  bench::TpccReport report;  ///< of the last audit
  std::string medium;
  std::string guarantee;
};

class TpccKillLoop {
 public:
  TpccKillLoop(const TpccKillOptions& options, std::string witness_path,
               bench::TpccWitness& witness, TpccKillFigures& figures)
      : options_(options),
        plan_(witness.plan()),
        witness_path_(std::move(witness_path)),
        witness_(witness),
        figures_(figures),
        random_(options.seed) {}

  /// Fails with the first thing that went wrong.
  Status run() {
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      if (round % kRoundsPerPool == 0) FLUGS_TRY(make_pool());
      FLUGS_TRY(kill_once(true));
      if (round % kTpccSecondKillEvery == kTpccSecondKillEvery - 1) FLUGS_TRY(kill_once(false));
      const bool is_last = round + 1 == options_.rounds;
      FLUGS_TRY(audit(is_last || round % kTpccVerifyEvery == kTpccVerifyEvery - 1));
      bar_.update("killing", round + 1, options_.rounds, "rounds");
    }
    return {};
  }

 private:
  Result<Database> open(OpenMode mode) const {
    OpenOptions open =
        tpcc_open_options(plan_.pool_path, mode, options_.users, options_.index_place);
    open.crash_ring = options_.process_crash_only;
    return Database::open(open);
  }

  Status make_pool() {
    std::error_code none;
    std::filesystem::remove(plan_.pool_path, none);
    FLUGS_ASSIGN(Database database, open(OpenMode::kCreate));
    FLUGS_ASSIGN(const bench::TpccTables tables,
                 bench::create_tpcc_tables(database, plan_.population.warehouses));
    FLUGS_TRY(bench::load_tpcc(database, tables, plan_.population));
    const Statistics statistics = database.statistics();
    figures_.medium = statistics.medium;
    figures_.guarantee =
        options_.process_crash_only ? statistics.guarantee_soon : statistics.guarantee;
    ++figures_.pools;
    promises_.emplace(plan_.population);
    return {};
  }

  /// `works`: users work for some time before the kill; else it may come while the pool is opened.
  Status kill_once(bool works) {
    witness_.is_running().store(0);
    FLUGS_ASSIGN(ChildProcess child, ChildProcess::start({"tpcc-child", witness_path_}));
    if (works) {
      while (witness_.is_running().load() == 0 && !child.has_ended())
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      std::this_thread::sleep_for(
          std::chrono::milliseconds(random_.between(1, options_.run_ms_max)));
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(kTpccEarlyUsMax)));
    }
    if (child.has_ended())
      return Status(StatusCode::kCorrupt,
                    "the process that worked with the database " + child.describe_end());
    child.kill();
    ++figures_.kills;
    return {};
  }

  Status audit(bool verifies) {
    FLUGS_ASSIGN(Database database, open(OpenMode::kOpen));
    FLUGS_ASSIGN(const bench::TpccTables tables, bench::find_tpcc_tables(database));
    bench::TpccFindings findings(plan_.population);
    findings.keep_payments_since(witness_.first_time_us());
    {
      FLUGS_ASSIGN(const Transaction snapshot, database.begin(AccessMode::kReadOnly));
      FLUGS_TRY(bench::read_tpcc(snapshot, tables, findings));
    }
    figures_.report = findings.check();
    const std::uint64_t audited = promises_->audited();
    const std::uint64_t completed = promises_->completed();
    promises_->audit(witness_, findings, figures_.report);
    figures_.audited += promises_->audited() - audited;
    figures_.completed += promises_->completed() - completed;
    figures_.lost += promises_->lost();
    if (verifies) {
      figures_.report.check(bench::TpccCondition::kE10);
      if (const Status s = database.check(); !s.ok())
        figures_.report.broken(bench::TpccCondition::kE10, s.to_string());
    }
    for (const std::string& problem : figures_.report.problems())
      fmt::print(stderr, "flugs: {}\n", problem);
    if (!figures_.report.all_held()) return Status(StatusCode::kCorrupt, "an audit failed");
    witness_.clear_logs();
    return {};
  }

  const TpccKillOptions& options_;
  const bench::TpccWitness::Plan& plan_;
  std::string witness_path_;
  bench::TpccWitness& witness_;
  TpccKillFigures& figures_;
  bench::Random random_;
  std::optional<bench::TpccPromises> promises_;
  ProgressBar bar_;
};

bench::Json tpcc_kill_json(const TpccKillOptions& options, const bench::TpccOptions& population,
                           const TpccKillFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.medium;
  json["guarantee"] = figures.guarantee;
  json["workload"] = "tpcc";
  json["warehouses"] = population.warehouses;
  json["customers_per_district"] = population.customers_per_district;
  json["items"] = population.items;
  json["users"] = options.users;
  json["merge_interval_ms"] = options.merge_interval_ms;
  json["process_crash_only"] = options.process_crash_only;
  json["index"] = to_string(options.index_place);
  json["seed"] = options.seed;
  json["rounds"] = options.rounds;
  json["kills"] = figures.kills;
  json["pools"] = figures.pools;
  json["audited_transactions"] = figures.audited;
  json["completed_in_flight"] = figures.completed;
  json["lost_acknowledged"] = figures.lost;
  json["failures"] = figures.failures;
  json["conditions"] = tpcc_conditions_json(figures.report);
  json["machine"] = bench::to_json(environment);
  return json;
}

Result<bench::TpccWitness::Plan> plan_of(const TpccKillOptions& options, const std::string& pool) {
  bench::TpccWitness::Plan plan;
  if (pool.size() >= sizeof plan.pool_path)
    return Status(StatusCode::kInvalidArgument, "the pool's path is too long");
  pool.copy(plan.pool_path, sizeof plan.pool_path - 1);
  plan.population.warehouses = 2;
  plan.population.customers_per_district = 30;
  plan.population.items = 500;
  plan.population.seed = options.seed;
  plan.users = options.users;
  plan.seed = options.seed;
  plan.log_entries = kTpccWritesPerMsMax * (options.run_ms_max + 2000);
  plan.merge_interval_ms = options.merge_interval_ms;
  plan.indexes_in_dram = options.index_place == IndexPlace::kDram;
  plan.process_crash_only = options.process_crash_only;
  return plan;
}

}  // namespace

OpenOptions tpcc_open_options(const std::string& pool, OpenMode mode, std::uint32_t users,
                              IndexPlace place) {
  OpenOptions options = tatp_open_options(pool, mode, users, {});
  options.max_bytes = std::uint64_t{8} << 30;
  options.segment_bytes = options.tuning.grow_ahead_bytes = std::uint64_t{8} << 20;
  options.index_place = place;
  return options;
}

int run_tpcc_kill_loop(const TpccKillOptions& options) {
  Result<PoolFile> pool = PoolFile::choose(options.pool, options.keep, kTpccPoolBytesWanted);
  if (!pool.ok()) return could_not_run(pool.status());
  if (pool->existed())
    return could_not_run(Status(StatusCode::kAlreadyExists,
                                pool->path() + " exists: name a path that does not exist, because "
                                               "the run makes a new pool and crashes it"));
  if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
  const Result<bench::TpccWitness::Plan> plan = plan_of(options, pool->path());
  if (!plan.ok()) return could_not_run(plan.status());
  const TemporaryFile witness_file(
      fresh_shared_path(".witness", plan->log_entries * sizeof(bench::TpccEntry)));
  Result<bench::TpccWitness> witness = bench::TpccWitness::create(witness_file.path(), *plan);
  if (!witness.ok()) return could_not_run(witness.status());
  TpccKillFigures figures;
  const Status status = TpccKillLoop(options, witness_file.path(), *witness, figures).run();
  if (!status.ok()) {
    ++figures.failures;
    fmt::print(stderr, "flugs: after {} kills, seed {}: {}\n", figures.kills, options.seed,
               status.to_string());
  }
  fmt::print(
      "{} processes killed on {} pools; {} acknowledged transactions of TPC-C found again, {} "
      "lost; "
      "{} in flight were completed\n",
      figures.kills, figures.pools, figures.audited - figures.lost, figures.lost,
      figures.completed);
  fmt::print("conditions: {}\n", figures.report.describe());
  return finish_with_json(options.json, tpcc_kill_json(options, plan->population, figures),
                          status.ok() ? kExitOk : kExitCheckFailed);
}

}  // namespace flugs::tools
