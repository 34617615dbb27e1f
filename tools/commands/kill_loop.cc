#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "bench/support/environment.h"
#include "bench/support/random.h"
#include "tools/children/crash_run.h"
#include "tools/children/random_kill_loop.h"
#include "tools/children/tpcc_kill_loop.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

/// In one round of this many the whole pool is verified, or the kill comes while it is being
/// opened.
constexpr std::uint32_t kVerifyEvery = 20;
constexpr std::uint32_t kKillEarlyEvery = 8;
constexpr std::uint32_t kEarlyUsMax = 30'000;

struct KillLoopOptions {
  std::string pool;
  std::string workload = "tatp";
  std::uint32_t rounds = 200;
  std::uint32_t subscribers = 2000;
  std::uint32_t users = 4;
  std::uint32_t run_ms_max = 200;
  std::uint32_t merge_interval_ms = 0;
  CommitOptions commit;
  std::uint64_t seed = 1;
  IndexPlace index_place = kDefaultIndexPlace;
  TableLayout layout = TableLayout::kRows;
  bool keep = false;
  bool fills_medium = false;
  std::string json;
};

struct KillLoopFigures {
  std::uint32_t rounds = 0;          ///< processes killed
  std::uint32_t killed_opening = 0;  ///< of these, perhaps before the database was open
  std::uint64_t audited = 0;         ///< write transactions
  std::uint64_t completed = 0;       ///< in flight, by restarts
  std::uint64_t undone = 0;
  std::uint64_t lost_acknowledged = 0;
  std::uint64_t failures = 0;
  bench::InvariantReport invariants;  ///< of all audits
};

class KillLoop {
 public:
  KillLoop(const KillLoopOptions& options, CrashRun& crash, KillLoopFigures& figures)
      : options_(options), crash_(crash), figures_(figures), random_(options.seed) {}

  /// Fails with the first thing that went wrong.
  Status run() {
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      Status status = kill_once(round);
      if (!status.ok()) return status;
      bar_.update("killing", round + 1, options_.rounds, "kills");
    }
    Status status = crash_.start({.check = true, .verify = true});
    int exit_status = kExitCouldNotRun;
    if (status.ok()) status = crash_.wait_until_done(bar_, exit_status);
    if (!status.ok()) return status;
    add_audit();
    if (exit_status != kExitOk)
      return Status(StatusCode::kCorrupt, "the last audit failed, see above");
    return {};
  }

  void add_audit() {
    bench::CrashStatus& status = crash_.witness().status();
    figures_.audited += status.audited_entries.exchange(0);
    figures_.lost_acknowledged += status.lost_acknowledged.exchange(0);
    figures_.completed += status.recovery_completed.exchange(0);
    figures_.undone += status.recovery_undone.exchange(0);
    figures_.invariants.merge(crash_.invariants());
  }

 private:
  Status kill_once(std::uint32_t round) {
    const bool first = round == 0;
    Status status = crash_.start({.populate = first,
                                  .check = !first,
                                  .verify = round % kVerifyEvery == kVerifyEvery - 1,
                                  .run = true});
    if (!status.ok()) return status;
    if (round % kKillEarlyEvery == kKillEarlyEvery - 1) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(kEarlyUsMax)));
      ++figures_.killed_opening;
      status = crash_.expect_alive();
    } else {
      status = wait_until_running();
      if (status.ok() && !first) add_audit();
      if (!status.ok()) return status;
      std::this_thread::sleep_for(
          std::chrono::milliseconds(random_.between(1, options_.run_ms_max)));
      status = crash_.expect_alive();
    }
    crash_.kill();
    ++figures_.rounds;
    return status;
  }

  Status wait_until_running() {
    while (crash_.witness().status().stage.load() != bench::Stage::kRunning) {
      Status status = crash_.expect_alive();
      if (!status.ok()) return status;
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    return {};
  }

  const KillLoopOptions& options_;
  CrashRun& crash_;
  KillLoopFigures& figures_;
  bench::Random random_;
  ProgressBar bar_;
};

bench::Json figures_json(const KillLoopOptions& options, CrashRun& crash,
                         const KillLoopFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = crash.witness().status().medium;
  json["guarantee"] = crash.witness().status().guarantee;
  json["subscribers"] = options.subscribers;
  json["users"] = options.users;
  json["merge_interval_ms"] = options.merge_interval_ms;
  json["process_crash_only"] = options.commit.durability == Durability::kProcessCrash;
  json["index"] = to_string(options.index_place);
  json["layout"] = to_string(options.layout);
  json["seed"] = options.seed;
  json["rounds"] = figures.rounds;
  json["killed_opening"] = figures.killed_opening;
  json["audited_transactions"] = figures.audited;
  json["transactions_completed"] = figures.completed;
  json["transactions_undone"] = figures.undone;
  json["lost_acknowledged"] = figures.lost_acknowledged;
  json["failures"] = figures.failures;
  json["invariants"] = invariants_json(figures.invariants);
  json["pool_bytes"] = crash.witness().status().pool_bytes.load();
  json["machine"] = bench::to_json(environment);
  return json;
}

int run_command(const KillLoopOptions& options) {
  constexpr std::uint64_t kWritesPerMsMax = 2000;  // of one user
  bench::CrashPlan plan;
  plan.population.subscribers = options.subscribers;
  plan.population.seed = options.seed;
  plan.population.parity = true;
  plan.users = options.users;
  plan.index_place = options.index_place;
  plan.layout = options.layout;
  plan.merge_interval_ms = options.merge_interval_ms;
  plan.process_crash_only = options.commit.durability == Durability::kProcessCrash;
  plan.load_threads = default_load_threads();
  plan.log_entries = kWritesPerMsMax * (options.run_ms_max + 2000);
  Result<CrashRun> crash = CrashRun::prepare(plan, options.pool, options.keep);
  if (!crash.ok()) return could_not_run(crash.status());
  if (!crash->pool().remark().empty()) fmt::print("{}\n", crash->pool().remark());
  KillLoopFigures figures;
  Status status;
  {
    KillLoop loop(options, *crash, figures);
    status = loop.run();
    if (!status.ok()) {
      ++figures.failures;
      loop.add_audit();
    }
  }
  if (!status.ok())
    fmt::print(stderr, "flugs: round {}, seed {}: {}\n", figures.rounds, options.seed,
               status.to_string());
  fmt::print(
      "{} processes killed ({} while opening); {} write transactions audited, {} lost; "
      "restarts completed {} and undid {}\n",
      figures.rounds, figures.killed_opening, figures.audited, figures.lost_acknowledged,
      figures.completed, figures.undone);
  fmt::print("invariants: {}\n", describe_invariants(figures.invariants));
  const bool good = figures.failures == 0 && figures.lost_acknowledged == 0;
  return finish_with_json(options.json, figures_json(options, *crash, figures),
                          good ? kExitOk : kExitCheckFailed);
}

// Options that each may be given, but not together.
Status check_together(const KillLoopOptions& options) {
  if (options.workload == "random" && options.commit.durability != Durability::kOnReturn)
    return Status(StatusCode::kInvalidArgument,
                  "--process-crash-only needs --workload tatp or tpcc");
  if (options.workload != "tatp" && options.layout != TableLayout::kRows)
    return Status(StatusCode::kInvalidArgument,
                  "--layout columns and --layout groups need --workload tatp; random "
                  "tables have all layouts");
  if (options.workload != "random" && options.fills_medium)
    return Status(StatusCode::kInvalidArgument,
                  "--fill-medium needs --workload random: the work of the others "
                  "ends when it finds no space");
  return {};
}

}  // namespace

void add_kill_loop(CLI::App& app, Action& action) {
  auto options = std::make_shared<KillLoopOptions>();
  CLI::App* command = app.add_subcommand(
      "kill-loop", "Kills the work on one pool again and again, and audits all promises");
  add_new_pool_options(*command, options->pool, &options->keep);
  command
      ->add_option("--workload", options->workload,
                   "Work to kill; random: transactions and definitions of random tables")
      ->check(CLI::IsMember({"tatp", "tpcc", "random"}))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Number of kills")
      ->check(CLI::Range(1u, 100'000'000u))
      ->capture_default_str();
  command->add_option("--subscribers", options->subscribers, "Size of the population of tatp")
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax))
      ->capture_default_str();
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command
      ->add_option("--run-ms", options->run_ms_max,
                   "Milliseconds that a run lasts before its kill, at most")
      ->check(CLI::Range(1u, 60'000u))
      ->capture_default_str();
  command
      ->add_option(
          "--merge-interval", options->merge_interval_ms,
          "Merge the tables of tatp or tpcc automatically, at most once in this many ms; 0: never")
      ->check(CLI::Range(0u, 86'400'000u))
      ->capture_default_str();
  add_process_crash_option(*command, options->commit);
  command->add_flag("--fill-medium", options->fills_medium,
                    "Also fill the pool's file system beside the work, and free it again: work "
                    "must go on when there is room. For random; needs a --pool on a file system of "
                    "at most 1 GB");
  command->add_option("--seed", options->seed, "Seed of all random numbers")->capture_default_str();
  add_index_option(*command, options->index_place);
  add_layout_option(*command, options->layout);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] {
    if (const Status status = check_together(*options); !status.ok()) return could_not_run(status);
    if (options->workload == "tatp") return run_command(*options);
    if (options->workload == "tpcc")
      return run_tpcc_kill_loop(
          {options->pool, options->rounds, options->users, options->run_ms_max,
           options->merge_interval_ms, options->commit.durability == Durability::kProcessCrash,
           options->seed, options->index_place, options->keep, options->json});
    return run_random_kill_loop({options->pool, options->rounds, options->users,
                                 options->run_ms_max, options->seed, options->index_place,
                                 options->keep, options->fills_medium, options->json});
  });
}

}  // namespace flugs::tools
