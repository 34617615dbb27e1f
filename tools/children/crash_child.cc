#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "bench/support/clock.h"
#include "bench/tatp/tatp_driver.h"
#include "bench/tatp/tatp_invariants.h"
#include "bench/tatp/tatp_load.h"
#include "bench/tatp/witness.h"
#include "tools/children/crash_run.h"
#include "tools/support/child_process.h"
#include "tools/support/command.h"
#include "tools/support/memory_group.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

/// One process of a crash run: it opens the pool, does its task, and is usually killed in it.
class CrashChild {
 public:
  /// `pool_path` is the present path of the pool of the witness's plan; empty: the path in the
  /// plan.
  CrashChild(bench::Witness& witness, const CrashTask& task, const std::string& pool_path)
      : witness_(witness),
        status_(witness.status()),
        task_(task),
        pool_path_(pool_path.empty() ? witness.plan().pool_path : pool_path),
        population_(witness.plan().population) {}

  int run() {
    status_.main_ns.store(bench::monotonic_ns());
    status_.progress_done.store(0);
    status_.progress_total.store(0);
    status_.audited_entries.store(0);
    status_.lost_acknowledged.store(0);
    witness_.begin_life();
    const bench::CrashPlan& plan = witness_.plan();
    set_stage(bench::Stage::kOpening);
    OpenOptions options = tatp_open_options(
        pool_path_, task_.populate ? OpenMode::kCreate : OpenMode::kOpen, plan.users, plan.scm);
    options.index_place = plan.index_place;
    options.crash_ring = plan.process_crash_only;
    if (plan.direct_write_bytes != 0) options.tuning.direct_write_bytes = plan.direct_write_bytes;
    if (plan.pool_bytes_max != 0) options.max_bytes = plan.pool_bytes_max;
    if (plan.merge_interval_ms != 0)
      options.merge_policy =
          policy_of({.mode = TatpMerge::Mode::kAuto, .interval_ms = plan.merge_interval_ms});
    if (plan.segment_bytes != 0)
      options.segment_bytes = options.tuning.grow_ahead_bytes = plan.segment_bytes;
    options.tuning.journal_bytes = plan.journal_bytes;
    Result<Database> database = Database::open(options);
    if (!database.ok()) return could_not_run(database.status());
    publish_opening(*database);
    return work(*database);
  }

 private:
  void set_stage(bench::Stage stage) { status_.stage.store(stage); }

  void publish_opening(const Database& database) {
    const Statistics statistics = database.statistics();
    flush_ = statistics.flush;
    copy_text(statistics.medium, status_.medium);
    const bool is_on_return = !witness_.plan().process_crash_only;
    copy_text(is_on_return ? statistics.guarantee : statistics.guarantee_soon, status_.guarantee);
    status_.pool_bytes.store(statistics.pool_allocated_bytes);
    status_.recovery_completed.store(database.recovery_report().transactions_completed);
    status_.recovery_undone.store(database.recovery_report().transactions_undone);
    status_.opened_ns.store(bench::monotonic_ns());
  }

  template <std::size_t size>
  static void copy_text(const std::string& text, char (&out)[size]) {
    const std::size_t length = text.copy(out, size - 1);
    out[length] = '\0';
  }

  int work(Database& database) {
    const Result<bench::TatpTables> tables =
        task_.populate ? bench::create_tatp_tables(database) : bench::find_tatp_tables(database);
    if (!tables.ok()) return could_not_run(tables.status());
    if (task_.populate) {
      Status status = lay_out_tables(database, witness_.plan().layout);
      if (status.ok()) status = populate(database, tables.value());
      if (!status.ok()) return could_not_run(status);
    }
    bool good = true;
    if (task_.check) {
      const Status status = check(database, tables.value(), good);
      if (!status.ok()) return could_not_run(status);
    }
    if (task_.verify) {
      set_stage(bench::Stage::kChecking);
      const Status status = database.check();
      if (!status.ok()) {
        fmt::print(stderr, "flugs: verify: {}\n", status.to_string());
        good = false;
      }
    }
    if (task_.report) report(good);
    if (!good) return kExitCheckFailed;
    if (task_.run) return run_until_killed(database, tables.value());
    set_stage(bench::Stage::kDone);
    return kExitOk;
  }

  Status populate(Database& database, const bench::TatpTables& tables) {
    set_stage(bench::Stage::kPopulating);
    const Result<bench::LoadResult> load = bench::load_population(
        database, tables, population_, witness_.plan().load_threads,
        [this](std::uint64_t done, std::uint64_t total) { progress(done, total); });
    if (!load.ok()) return load.status();
    status_.rows_loaded.store(load.value().rows);
    status_.load_seconds.store(load.value().seconds);
    if (witness_.plan().is_merged) return merge_all(database);
    status_.pool_bytes.store(database.statistics().pool_allocated_bytes);
    return {};
  }

  Status merge_all(Database& database) {
    for (const TableId table : database.tables())
      if (const auto merged = database.merge(table, {.scope = MergeScope::kEverything});
          !merged.ok())
        return merged.status();
    status_.pool_bytes.store(database.statistics().pool_used_bytes);
    return {};
  }

  // The state found becomes the base for the next life, so it is published only when it is right.
  Status check(Database& database, const bench::TatpTables& tables, bool& good) {
    set_stage(bench::Stage::kChecking);
    for (std::uint32_t user = 0; user < witness_.plan().users; ++user)
      status_.audited_entries.fetch_add(witness_.log(user).size());
    bench::InvariantOptions options;
    options.threads = witness_.plan().load_threads;
    options.witness = &witness_;
    options.store_next_base = true;
    options.progress = [this](std::uint64_t done, std::uint64_t total) { progress(done, total); };
    const Result<bench::InvariantReport> report =
        bench::check_tatp(database, tables, population_, options);
    if (!report.ok()) return report.status();
    status_.lost_acknowledged.store(report.value().lost_acknowledged_count());
    for (std::size_t i = 0; i < bench::kInvariants; ++i)
      status_.invariants[i].store(static_cast<std::uint32_t>(report.value().state(i)));
    for (const std::string& problem : report.value().problems())
      fmt::print(stderr, "flugs: {}\n", problem);
    good = report.value().all_held();
    if (good) witness_.publish_next_base();
    return {};
  }

  /// One line for a program that started this process where it cannot map our witness.
  void report(bool good) const {
    const bench::Json json = {{"medium", status_.medium},
                              {"flush", flush_},
                              {"good", good},
                              {"audited_transactions", status_.audited_entries.load()},
                              {"lost_acknowledged", status_.lost_acknowledged.load()},
                              {"transactions_completed", status_.recovery_completed.load()},
                              {"transactions_undone", status_.recovery_undone.load()},
                              {"pool_bytes", status_.pool_bytes.load()}};
    fmt::print("{}\n", json.dump());
    std::fflush(stdout);
  }

  int run_until_killed(Database& database, const bench::TatpTables& tables) {
    constexpr double kForEver = 1e9;
    const bench::CrashPlan& plan = witness_.plan();
    bench::TatpRunOptions options;
    options.users = plan.users;
    options.seconds = kForEver;
    options.mix = plan.mix;
    options.distribution = plan.distribution;
    options.seed = plan.run_seed(witness_.life());
    options.witness = &witness_;
    if (plan.process_crash_only) options.commit.durability = Durability::kProcessCrash;
    set_stage(bench::Stage::kRunning);
    const bench::TatpRunResult result = bench::run_tatp(database, tables, population_, options);
    fmt::print(stderr, "flugs: a transaction failed that must not fail: {}\n",
               result.failure.to_string());
    return kExitCheckFailed;
  }

  void progress(std::uint64_t done, std::uint64_t total) {
    status_.progress_done.store(done, std::memory_order_relaxed);
    status_.progress_total.store(total, std::memory_order_relaxed);
  }

  bench::Witness& witness_;
  bench::CrashStatus& status_;
  CrashTask task_;
  std::string pool_path_;
  bench::Population population_;
  std::string flush_;
};

}  // namespace

void add_crash_child(CLI::App& app, Action& action) {
  struct Options {
    std::string witness;
    std::string pool;
    CrashTask task;
    std::uint64_t spawned_at_ns = 0;
  };
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("crash-child", "A process of demo and kill-loop");
  command->group("");
  command->add_option("WITNESS", options->witness)->required();
  command->add_option("--pool", options->pool);
  command->add_flag("--populate", options->task.populate);
  command->add_flag("--check", options->task.check);
  command->add_flag("--verify", options->task.verify);
  command->add_flag("--run", options->task.run);
  command->add_flag("--report", options->task.report);
  command->add_option("--spawned-at", options->spawned_at_ns);
  command->callback([options, &action] {
    action = [options] {
      die_with_parent();
      Result<bench::Witness> witness = bench::Witness::open(options->witness);
      if (!witness.ok()) return could_not_run(witness.status());
      if (const std::string group = witness->plan().memory_group; !group.empty())
        if (const Status s = MemoryGroup::join(group); !s.ok()) return could_not_run(s);
      return CrashChild(*witness, options->task, options->pool).run();
    };
  });
}

}  // namespace flugs::tools
