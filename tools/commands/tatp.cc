#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "bench/tatp/tatp_driver.h"
#include "bench/tatp/tatp_invariants.h"
#include "bench/tatp/tatp_load.h"
#include "tools/report/shared_word_report.h"
#include "tools/support/cleanup.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/latency_text.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct TatpOptions {
  std::string pool;
  bench::PopulationOptions population;
  std::uint32_t users = 1;
  std::uint32_t lookahead = 0;
  double seconds = 10;
  double ramp_up = 2;
  bench::TatpMix mix = bench::TatpMix::kFull;
  bench::TatpDistribution distribution = bench::TatpDistribution::kNuRand;
  bench::ScmModel scm;
  TatpMerge merge;
  IndexPlace index_place = kDefaultIndexPlace;
  TableLayout layout = TableLayout::kRows;
  Isolation isolation = Isolation::kSnapshot;
  bool prepares = false;
  CommitOptions commit;
  std::uint32_t restart_budget_ms = 20;
  std::uint32_t journal_mb = 0;
  CommitClock clock = CommitClock::kAutomatic;
  std::uint32_t load_threads = default_load_threads();
  bool keep = false;
  bool check = true;
  bool witness = false;
  std::string json;
};

/// Everything a run gave.
struct TatpFigures {
  std::string pool_path;
  bench::LoadResult load;
  bench::TatpRunResult run;
  bench::InvariantReport invariants;

  double per_committed_byte(std::uint64_t bytes) const {
    return static_cast<double>(bytes) /
           static_cast<double>(std::max<std::uint64_t>(run.committed_bytes(), 1));
  }
  double write_amplification() const {
    return per_committed_byte(run.after.bytes_written - run.before.bytes_written);
  }
  double write_amplification_of_medium() const {
    return per_committed_byte(64 * (run.after.lines_flushed - run.before.lines_flushed));
  }
};

bench::Json latency_json(const bench::TatpRunResult& run) {
  bench::Json json;
  json["all"] = bench::to_json(run.latency);
  for (std::size_t i = 0; i < bench::kTatpTypes; ++i)
    json[std::string(bench::kTatpTypeNames[i])] = bench::to_json(run.types[i].latency);
  return json;
}

bench::Json types_json(const bench::TatpRunResult& run) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < bench::kTatpTypes; ++i)
    json[std::string(bench::kTatpTypeNames[i])] = {{"executed", run.types[i].executed},
                                                   {"found", run.types[i].found}};
  return json;
}

bench::Json merge_json(const TatpOptions& options, const TatpFigures& figures) {
  const bench::TatpRunResult& run = figures.run;
  bench::Json json = {{"merge", name_of(options.merge.mode)},
                      {"merged_first", options.merge.first},
                      {"merge_interval_ms", options.merge.interval_ms},
                      {"merge_niceness", options.merge.niceness},
                      {"merge_written_percent", options.merge.written_percent},
                      {"merges", run.after.merges - run.before.merges},
                      {"merge_failures", run.after.merge_failures - run.before.merge_failures},
                      {"merge_seconds", run.after.merge_seconds - run.before.merge_seconds},
                      {"tps_share_during_merge", nullptr},
                      {"latency_ns_update_location_during_merge", nullptr},
                      {"committed_bytes", run.committed_bytes()},
                      {"write_amplification", nullptr},
                      {"write_amplification_of_medium", nullptr}};
  if (run.share_during_merge) json["tps_share_during_merge"] = *run.share_during_merge;
  if (run.location_during_merge.count() != 0)
    json["latency_ns_update_location_during_merge"] = bench::to_json(run.location_during_merge);
  if (run.committed_bytes() == 0) return json;
  json["write_amplification"] = figures.write_amplification();
  json["write_amplification_of_medium"] = figures.write_amplification_of_medium();
  return json;
}

const std::string& guarantee_of(const TatpOptions& options, const bench::TatpRunResult& run) {
  return options.commit.durability == Durability::kOnReturn ? run.after.guarantee
                                                            : run.after.guarantee_soon;
}

bench::Json journal_json(const bench::TatpRunResult& run) {
  return {{"writes", run.per_write(&Statistics::journal_writes)},
          {"record_bytes", run.per_write(&Statistics::journal_record_bytes)},
          {"written_bytes", run.per_write(&Statistics::journal_written_bytes)},
          {"direct_writes", run.per_write(&Statistics::direct_writes)},
          {"direct_written_bytes", run.per_write(&Statistics::direct_written_bytes)}};
}

bench::Json durability_json(const TatpOptions& options, const bench::TatpRunResult& run) {
  if (options.commit.durability == Durability::kOnReturn) return {{"kind", "on-return"}};
  if (options.commit.durability == Durability::kProcessCrash) return {{"kind", "process-crash"}};
  const std::uint64_t soon = run.after.commits_soon - run.before.commits_soon;
  const std::uint64_t late = run.after.commits_soon_late - run.before.commits_soon_late;
  return {{"kind", "soon"},
          {"soon_ms", options.commit.soon.count()},
          {"commits", soon},
          {"late_share", soon == 0 ? 0.0 : static_cast<double>(late) / static_cast<double>(soon)}};
}

bench::Json figures_json(const TatpOptions& options, const TatpFigures& figures) {
  const bench::TatpRunResult& run = figures.run;
  const bench::Environment environment = bench::environment();
  bench::Json json = {{"commit", environment.commit}, {"medium", run.after.medium}};
  json["restart_budget_ms"] = options.restart_budget_ms;
  json["journal_mb"] = options.journal_mb;
  json["flush"] = run.after.flush;
  json["dirty_shutdowns"] = run.after.dirty_shutdowns;
  json["guarantee"] = guarantee_of(options, run);
  json["durability"] = durability_json(options, run);
  json["subscribers"] = options.population.subscribers;
  json["users"] = options.users;
  json["index"] = to_string(options.index_place);
  json["layout"] = to_string(options.layout);
  json["dram_index_bytes"] = run.after.dram_index_bytes;
  json["hint_index_bytes"] = run.after.hint_index_bytes;
  json["lookahead"] = options.lookahead;
  json["mix"] = to_string(options.mix);
  json["distribution"] = to_string(options.distribution);
  json["seconds"] = run.seconds;
  json["ramp_up_seconds"] = options.ramp_up;
  json["seed"] = options.population.seed;
  json["reference_end_time"] = options.population.reference_end_time;
  json["verify_t8"] = options.population.parity;
  json["scm_latency_ns"] = scm_json(options.scm);
  json["isolation"] = to_string(options.isolation);
  json["prepared"] = options.prepares;
  json["clock"] = to_string(run.after.clock);
  json["executed_tps"] = run.per_second(run.executed());
  json["rule_a_tps"] = run.per_second(run.counted_by_rule_a());
  json["rule_b_tps"] = run.per_second(run.counted_by_rule_b());
  json["rule_c_tps"] = run.per_second(run.counted_by_rule_c());
  json["latency_rule"] = "B";
  json["latency_clock"] = bench::Ticks::instance().name();
  json["latency_ns"] = latency_json(run);
  json["transactions"] = types_json(run);
  json["retries"] = run.retries;
  if (kCountsSharedWords) json["contended_per_transaction"] = shared_words_json(run);
  json["tps_by_second"] = run.tps_by_second;
  json["per_write_txn"] = {{"fences", run.per_write(&Statistics::fences)},
                           {"lines_flushed", run.per_write(&Statistics::lines_flushed)},
                           {"bytes_written", run.per_write(&Statistics::bytes_written)}};
  json["processor_ns_per_write_txn"] = {{"user", run.ns_per_write(run.processor.user_ns)},
                                        {"system", run.ns_per_write(run.processor.system_ns)}};
  json["journal_per_write_txn"] = journal_json(run);
  json["scm_lines_per_txn"] = scm_lines_json(run);
  json.update(merge_json(options, figures));
  json["invariants"] = invariants_json(figures.invariants);
  json["problems"] = figures.invariants.problems();
  json["pool_bytes"] = run.after.pool_allocated_bytes;
  json["pool_used_bytes"] = run.after.pool_used_bytes;
  json["dram_bytes"] = run.dram_bytes;
  json["dram_index_bytes"] = run.after.dram_index_bytes;
  json["load"] = {{"rows", figures.load.rows},
                  {"seconds", figures.load.seconds},
                  {"rows_per_s", static_cast<double>(figures.load.rows) / figures.load.seconds},
                  {"threads", options.load_threads}};
  json["machine"] = bench::to_json(environment);
  return json;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.1f}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

void add_latency_cells(std::vector<std::string>& cells, const bench::Histogram& latency) {
  for (const double fraction : {0.5, 0.9, 0.99, 0.999})
    cells.push_back(format_percentile(latency, fraction));
  cells.push_back(format_percentile(latency, 1));
}

void print_transactions(const bench::TatpRunResult& run) {
  TextTable table(
      {"transaction", "executed", "% of all", "% found", "p50", "p90", "p99", "p99.9", "max"});
  const auto add = [&](std::string name, std::uint64_t executed, std::uint64_t found,
                       const bench::Histogram& latency) {
    std::vector<std::string> cells = {std::move(name), format_count(static_cast<double>(executed)),
                                      percent(executed, run.executed()), percent(found, executed)};
    add_latency_cells(cells, latency);
    table.add(std::move(cells));
  };
  for (std::size_t i = 0; i < bench::kTatpTypes; ++i) {
    const bench::TatpTypeResult& type = run.types[i];
    if (type.executed > 0)
      add(std::string(bench::kTatpTypeNames[i]), type.executed, type.found, type.latency);
  }
  add("all", run.executed(), run.counted_by_rule_c(), run.latency);
  fmt::print("{}latency of transactions that rule B counts, retries included; clock: {}\n\n",
             table.to_string(), bench::Ticks::instance().name());
}

void print_merges(const bench::TatpRunResult& run) {
  fmt::print("merges {}, {:.2f} s at work, {} failed", run.after.merges - run.before.merges,
             run.after.merge_seconds - run.before.merge_seconds,
             run.after.merge_failures - run.before.merge_failures);
  if (run.share_during_merge)
    fmt::print("; meanwhile {:.0f} % of the throughput without", 100 * *run.share_during_merge);
  if (run.location_during_merge.count() != 0)
    fmt::print(", update_location p99.9 {}",
               format_ns(run.location_during_merge.percentile(0.999)));
  fmt::print("\n");
}

void print_figures(const TatpOptions& options, const TatpFigures& figures) {
  const bench::TatpRunResult& run = figures.run;
  fmt::print("TATP, {} subscribers, {} user{}, {} mix, {} ids, {:.1f} s after {:.1f} s ramp-up\n",
             options.population.subscribers, options.users, options.users == 1 ? "" : "s",
             to_string(options.mix), to_string(options.distribution), run.seconds, options.ramp_up);
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, run.after.medium,
             guarantee_of(options, run));
  fmt::print("loaded {} rows in {:.2f} s ({} rows/s)\n\n", figures.load.rows, figures.load.seconds,
             format_count(static_cast<double>(figures.load.rows) / figures.load.seconds));
  print_transactions(run);
  if (kCountsSharedWords) print_shared_words(run);
  fmt::print("transactions per second   executed {}   rule A {}   rule B {}   rule C {}\n",
             format_count(run.per_second(run.executed())),
             format_count(run.per_second(run.counted_by_rule_a())),
             format_count(run.per_second(run.counted_by_rule_b())),
             format_count(run.per_second(run.counted_by_rule_c())));
  std::string curve;
  for (const double tps : run.tps_by_second) curve += " " + format_count(tps);
  if (!curve.empty()) fmt::print("second by second         {}\n", curve);
  fmt::print("per write transaction     fences {:.2f}   lines flushed {:.2f}   bytes {:.0f}\n",
             run.per_write(&Statistics::fences), run.per_write(&Statistics::lines_flushed),
             run.per_write(&Statistics::bytes_written));
  fmt::print("processor, likewise       {} by itself, {} in the kernel\n",
             format_ns(static_cast<std::uint64_t>(run.ns_per_write(run.processor.user_ns))),
             format_ns(static_cast<std::uint64_t>(run.ns_per_write(run.processor.system_ns))));
  if (run.after.journal_writes != 0)
    fmt::print("journal, likewise         writes {:.2f}   bytes {:.0f}, with padding {:.0f}\n",
               run.per_write(&Statistics::journal_writes),
               run.per_write(&Statistics::journal_record_bytes),
               run.per_write(&Statistics::journal_written_bytes));
  if (run.after.direct_writes != 0)
    fmt::print("past the journal          writes {:.4f}   bytes {:.0f}\n",
               run.per_write(&Statistics::direct_writes),
               run.per_write(&Statistics::direct_written_bytes));
  if (run.after.scm_lines_read != 0)
    fmt::print("lines of SCM read         {:.2f} a transaction, {:.2f} more in sequence\n",
               run.per_executed(&Statistics::scm_lines_read),
               run.per_executed(&Statistics::scm_lines_read_in_sequence));
  if (run.committed_bytes() != 0)
    fmt::print(
        "written to the pool       {:.1f} bytes for each byte of values committed, {:.1f} in "
        "whole lines\n",
        figures.write_amplification(), figures.write_amplification_of_medium());
  if (options.merge.mode == TatpMerge::Mode::kAuto) print_merges(run);
  fmt::print("conflicts retried {}\n", run.retries);
  fmt::print("pool {} ({} used), DRAM {} ({} indexes)\n",
             format_bytes(run.after.pool_allocated_bytes), format_bytes(run.after.pool_used_bytes),
             format_bytes(run.dram_bytes), format_bytes(run.after.dram_index_bytes));
  fmt::print("invariants: {}\n", describe_invariants(figures.invariants));
  for (const std::string& problem : figures.invariants.problems())
    fmt::print(stderr, "flugs: {}\n", problem);
}

/// The witness's plan: only what it needs for keeping logs.
Result<bench::Witness> make_witness(const TatpOptions& options, const std::string& path) {
  constexpr double kWritesPerSecondMax = 2e6;  // of one user; space not touched is not taken
  bench::CrashPlan plan;
  plan.population = options.population;
  plan.users = options.users;
  plan.log_entries =
      static_cast<std::uint64_t>(kWritesPerSecondMax * (options.seconds + options.ramp_up + 1));
  Result<bench::Witness> witness = bench::Witness::create(path, plan);
  if (witness.ok()) witness.value().begin_life();
  return witness;
}

class TatpCommand {
 public:
  explicit TatpCommand(const TatpOptions& options) : options_(options) {}

  Status run(TatpFigures& figures) {
    Result<PoolFile> pool = PoolFile::choose(options_.pool, options_.keep,
                                             tatp_pool_bytes(options_.population.subscribers));
    if (!pool.ok()) return std::move(pool).status();
    if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
    figures.pool_path = pool->path();
    std::optional<bench::Witness> witness;
    TemporaryFile witness_file;
    if (options_.witness) {
      witness_file = TemporaryFile(fresh_shared_path(".witness", std::uint64_t{1} << 30));
      Result<bench::Witness> made = make_witness(options_, witness_file.path());
      if (!made.ok()) return std::move(made).status();
      witness = std::move(made).value();
    }
    OpenOptions open =
        tatp_open_options(pool->path(), OpenMode::kOpenOrCreate, options_.users, options_.scm);
    open.tuning.merge_niceness = options_.merge.niceness;
    open.index_place = options_.index_place;
    open.tuning.clock = options_.clock;
    open.tuning.restart_budget = std::chrono::milliseconds(options_.restart_budget_ms);
    open.tuning.journal_bytes = std::uint64_t{options_.journal_mb} << 20;
    open.crash_ring = options_.commit.durability == Durability::kProcessCrash;
    Result<Database> database = Database::open(open);
    if (!database.ok()) return std::move(database).status();
    return run_on(*database, witness ? &*witness : nullptr, figures);
  }

 private:
  Status run_on(Database& database, bench::Witness* witness, TatpFigures& figures) {
    const Result<bench::TatpTables> tables = bench::create_tatp_tables(database);
    if (tables.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool already holds TATP's tables, but a run needs a new population: name "
                    "a different pool, or none");
    if (!tables.ok()) return tables.status();
    if (Status s = lay_out_tables(database, options_.layout); !s.ok()) return s;
    const bench::Population population(options_.population);
    Result<bench::LoadResult> load =
        bench::load_population(database, tables.value(), population, options_.load_threads,
                               [this](std::uint64_t done, std::uint64_t total) {
                                 bar_.update("loading", done, total, "subscribers");
                               });
    bar_.clear();
    if (!load.ok()) return std::move(load).status();
    figures.load = load.value();
    if (options_.merge.first)
      if (Status s = merge_everything(database); !s.ok()) return s;
    for (const TableId table : database.tables())
      if (Status s = database.set_merge_policy(table, policy_of(options_.merge)); !s.ok()) return s;

    bench::TatpRunOptions run_options;
    run_options.users = options_.users;
    run_options.lookahead = options_.lookahead;
    run_options.ramp_up_seconds = options_.ramp_up;
    run_options.seconds = options_.seconds;
    run_options.mix = options_.mix;
    run_options.distribution = options_.distribution;
    run_options.isolation = options_.isolation;
    run_options.prepares = options_.prepares;
    run_options.commit = options_.commit;
    run_options.seed = options_.population.seed;
    run_options.watches_merges = options_.merge.mode == TatpMerge::Mode::kAuto;
    run_options.witness = witness;
    run_options.progress = [this](double gone, double all) {
      bar_.update("running", static_cast<std::uint64_t>(gone * 1000),
                  static_cast<std::uint64_t>(all * 1000));
      return true;
    };
    figures.run = bench::run_tatp(database, tables.value(), population, run_options);
    bar_.clear();
    if (!figures.run.failure.ok()) return figures.run.failure;
    if (!options_.check) return {};
    return check(database, tables.value(), population, witness, figures);
  }

  Status check(Database& database, const bench::TatpTables& tables,
               const bench::Population& population, bench::Witness* witness, TatpFigures& figures) {
    bench::InvariantOptions check_options;
    check_options.threads = options_.load_threads;
    check_options.witness = witness;
    check_options.forwarding_rows = figures.load.forwarding_rows + figures.run.forwarding_inserted -
                                    figures.run.forwarding_deleted;
    check_options.progress = [this](std::uint64_t done, std::uint64_t total) {
      bar_.update("checking", done, total, "subscribers");
    };
    Result<bench::InvariantReport> report =
        bench::check_tatp(database, tables, population, check_options);
    bar_.clear();
    if (!report.ok()) return std::move(report).status();
    figures.invariants = report.value();
    return {};
  }

  const TatpOptions& options_;
  ProgressBar bar_;
};

int run_command(const TatpOptions& options) {
  TatpFigures figures;
  Status status = TatpCommand(options).run(figures);
  if (!figures.run.failure.ok()) {
    fmt::print(stderr, "flugs: a transaction failed that must not fail: {}\n", status.to_string());
    return kExitCheckFailed;
  }
  if (!status.ok()) return could_not_run(status);
  print_figures(options, figures);
  return finish_with_json(options.json, figures_json(options, figures),
                          figures.invariants.all_held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_tatp(CLI::App& app, Action& action) {
  auto options = std::make_shared<TatpOptions>();
  CLI::App* command = app.add_subcommand(
      "tatp", "Runs TATP: rates by three counting rules, response times, invariants");
  add_used_pool_options(*command, options->pool, options->keep);
  command->add_option("--subscribers", options->population.subscribers, "Size of the population")
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax))
      ->capture_default_str();
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command
      ->add_option(
          "--lookahead", options->lookahead,
          "Transactions that each user knows before it executes them; 0: closed loop, as in TATP")
      ->check(CLI::Range(0u, bench::kLookaheadMax))
      ->capture_default_str();
  add_period_options(*command, options->seconds, options->ramp_up);
  add_mix_option(*command, options->mix);
  add_distribution_option(*command, options->distribution);
  add_scm_options(*command, options->scm);
  add_merge_options(*command, options->merge);
  command->add_flag(
      "--reference-end-time", options->population.reference_end_time,
      "Let end_time - start_time be up to 24, as in the reference loader, instead of up to 8");
  command->add_flag("--verify-t8", options->population.parity,
                    "Make atomicity of UPDATE_SUBSCRIBER_DATA visible, and check it (not TATP)");
  command->add_flag("--witness", options->witness,
                    "Log the promises to users outside of the pool, and check T6 and T7 (slower)");
  command->add_option("--seed", options->population.seed, "Seed of all random numbers")
      ->capture_default_str();
  command->add_option("--load-threads", options->load_threads, "Threads that load and check")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command->add_flag("!--no-check", options->check, "Do not check the invariants afterwards");
  add_index_option(*command, options->index_place);
  add_layout_option(*command, options->layout);
  add_isolation_option(*command, options->isolation);
  command->add_flag("--prepared", options->prepares, "Look rows up through Database::prepare");
  add_clock_option(*command, options->clock);
  add_journal_options(*command, options->restart_budget_ms, options->journal_mb);
  add_durability_option(*command, options->commit);
  add_process_crash_option(*command, options->commit)->excludes("--durable-within");
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
