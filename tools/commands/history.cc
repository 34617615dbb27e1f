#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "tools/children/history_kills.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "verify/isolation/checker/checker.h"
#include "verify/isolation/checker/export.h"
#include "verify/isolation/sessions/history_run.h"

namespace flugs::tools {

namespace {

// Operations of a history, which is checked as a whole in memory: more are done in several, each
// with a pool of its own.
constexpr std::uint64_t kOperationsPerBatch = 1'000'000;
constexpr std::uint64_t kOperationsOfBrokenRule = 30'000;
constexpr std::uint64_t kHistoryPoolBytesWanted = std::uint64_t{1} << 30;

struct HistoryOptions {
  std::string isolation = "snapshot";
  std::string workload = "mixed";
  std::string merge = "on";
  std::uint64_t operations = 1'000'000;
  std::uint32_t kills = 0;
  bool skips_broken_rules = false;
  std::string broken;
  std::string pool;
  std::string export_path;
  std::string json;
  sessions::HistoryPlan plan;
};

struct HistoryFigures {
  isolation::Report report;
  std::string medium;
  std::string guarantee;
  std::uint64_t batches = 0;
  std::uint64_t merges = 0;
  bool has_failed = false;  ///< the engine, or a process that worked with it
  std::uint64_t kills = 0;
  double run_seconds = 0;
  double check_seconds = 0;
  std::uint64_t broken_rules_caught = 0;
  std::uint64_t broken_rules_total = 0;
  bench::Json broken_rules = bench::Json::object();
};

double seconds_since(std::uint64_t start_ns) {
  return static_cast<double>(bench::monotonic_ns() - start_ns) / 1e9;
}

/// A pool for one history, removed with it.
Result<PoolFile> history_pool(const HistoryOptions& options, sessions::HistoryPlan& plan) {
  Result<PoolFile> pool = PoolFile::choose(options.pool, false, kHistoryPoolBytesWanted);
  if (!pool.ok()) return pool;
  if (pool->existed())
    return Status(StatusCode::kAlreadyExists,
                  pool->path() +
                      " exists: name a path that does not exist, because the run makes a new pool");
  if (pool->path().size() >= sizeof plan.pool_path)
    return Status(StatusCode::kInvalidArgument, "the pool's path is too long");
  std::fill(std::begin(plan.pool_path), std::end(plan.pool_path), '\0');
  pool->path().copy(plan.pool_path, sizeof plan.pool_path - 1);
  return pool;
}

std::string replay_words(const HistoryOptions& options, const sessions::HistoryPlan& plan,
                         std::uint32_t kills) {
  return fmt::format(
      "flugs prove history --isolation {} --workload {} --operations {} --users {} --sessions {} "
      "--tables {} --keys {} --kills {} --merge {} --index {} --clock {} --seed {}{}",
      options.isolation, options.workload, plan.operations, plan.users, plan.sessions, plan.tables,
      plan.keys, kills, options.merge, to_string(plan.index_place), to_string(plan.clock),
      plan.seed, options.broken.empty() ? "" : " --broken-rule " + options.broken);
}

/// One history: made, exported if that was asked for, checked.
Status run_batch(const HistoryOptions& options, sessions::HistoryPlan plan, std::uint32_t kills,
                 HistoryFigures& figures) {
  Result<PoolFile> pool = history_pool(options, plan);
  if (!pool.ok()) return std::move(pool).status();
  const std::uint64_t start_ns = bench::monotonic_ns();
  Result<sessions::HistoryRun> run =
      kills == 0 ? sessions::run_history(plan) : run_history_with_kills(plan, kills);
  figures.run_seconds += seconds_since(start_ns);
  if (!run.ok()) {
    figures.has_failed = true;
    return std::move(run).status();
  }
  if (!options.export_path.empty())
    if (Status s = isolation::export_history(run->history, options.export_path); !s.ok()) return s;
  const std::uint64_t check_ns = bench::monotonic_ns();
  const Result<isolation::Report> report =
      isolation::check(run->history, {.level = plan.level, .reports_allowed = true});
  if (!report.ok()) return report.status();
  figures.check_seconds += seconds_since(check_ns);
  figures.report.add(*report);
  figures.medium = run->medium;
  figures.guarantee = run->guarantee;
  figures.merges += run->merges;
  figures.kills += run->kills;
  ++figures.batches;
  if (report->forbidden == 0) return {};
  fmt::print(stderr, "flugs: {} anomalies that {} forbids; {}\n", report->forbidden,
             isolation::to_string(plan.level), replay_words(options, plan, kills));
  for (const std::string& words : report->words) fmt::print(stderr, "{}\n", words);
  return {};
}

Status run_batches(const HistoryOptions& options, HistoryFigures& figures) {
  ProgressBar bar;
  const std::uint64_t batches =
      (options.operations + kOperationsPerBatch - 1) / kOperationsPerBatch;
  for (std::uint64_t batch = 0; batch < batches; ++batch) {
    sessions::HistoryPlan plan = options.plan;
    plan.seed += batch;
    plan.operations = options.operations / batches + (batch < options.operations % batches ? 1 : 0);
    const std::uint64_t kills = options.kills / batches + (batch < options.kills % batches ? 1 : 0);
    Status status = run_batch(options, plan, static_cast<std::uint32_t>(kills), figures);
    if (!status.ok()) {
      if (figures.has_failed)
        fmt::print(stderr, "flugs: {}\n",
                   replay_words(options, plan, static_cast<std::uint32_t>(kills)));
      return status;
    }
    bar.update("checking", figures.report.operations, options.operations, "operations");
  }
  return {};
}

bench::Json by_kind_json(const isolation::Report& report, bool forbidden) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < isolation::kAnomalyCount; ++i) {
    const auto& kind = report.by_kind[i];
    const std::uint64_t count = forbidden ? kind.forbidden : kind.allowed;
    if (count != 0)
      json[std::string(isolation::to_string(static_cast<isolation::Anomaly>(i)))] = count;
  }
  return json;
}

/// The history in which a rule is broken has its own size, in which every rule shows, however small
/// the run is.
sessions::HistoryPlan plan_to_break(const HistoryOptions& options) {
  sessions::HistoryPlan plan;
  plan.operations = kOperationsOfBrokenRule;
  plan.seed = options.plan.seed;
  plan.workload = options.plan.workload;
  plan.level = options.plan.level;
  plan.merges = options.plan.merges;
  plan.index_place = options.plan.index_place;
  plan.clock = options.plan.clock;
  return plan;
}

Status break_rules(const HistoryOptions& options, HistoryFigures& figures) {
  for (const sessions::BrokenRule rule : sessions::kBrokenRules) {
    if (!needs_rule(options.plan.level, rule)) continue;
    sessions::HistoryPlan plan = plan_to_break(options);
    Result<PoolFile> pool = history_pool(options, plan);
    if (!pool.ok()) return std::move(pool).status();
    const Result<isolation::Report> report = sessions::check_broken_rule(plan, rule);
    if (!report.ok()) {
      figures.has_failed = true;
      return report.status();
    }
    const bool is_caught = report->forbidden != 0;
    ++figures.broken_rules_total;
    figures.broken_rules_caught += is_caught ? 1 : 0;
    figures.broken_rules[std::string(to_string(rule))] = by_kind_json(*report, true);
    if (!is_caught)
      fmt::print(stderr, "flugs: the checker missed a broken rule: {}\n", to_string(rule));
  }
  return {};
}

bench::Json history_json(const HistoryOptions& options, const HistoryFigures& figures) {
  const bench::Environment environment = bench::environment();
  const isolation::Report& report = figures.report;
  const double seconds = figures.run_seconds + figures.check_seconds;
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.medium;
  json["guarantee"] = figures.guarantee;
  json["isolation"] = options.isolation;
  json["checked_for"] = isolation::to_string(options.plan.level);
  json["workload"] = options.workload;
  json["users"] = options.plan.users;
  json["threads"] = options.plan.users;
  json["sessions"] = options.plan.sessions;
  json["tables"] = options.plan.tables;
  json["merge"] = options.merge;
  json["index"] = to_string(options.plan.index_place);
  json["clock"] = to_string(options.plan.clock);
  json["seed"] = options.plan.seed;
  json["batches"] = figures.batches;
  json["operations"] = report.operations;
  json["transactions"] = report.transactions;
  json["committed"] = report.committed;
  json["aborted"] = report.aborted;
  json["killed_before_the_answer"] = report.unknown;
  json["of_these_seen"] = report.unknown_happened;
  json["dependencies"] = report.dependencies;
  json["anomalies"] = report.forbidden;
  json["anomalies_by_kind"] = by_kind_json(report, true);
  json["allowed_anomalies_seen"] = by_kind_json(report, false);
  json["failures"] = figures.has_failed ? 1 : 0;
  json["kills"] = figures.kills;
  json["merges"] = figures.merges;
  json["broken_rules_caught"] = figures.broken_rules_caught;
  json["broken_rules_total"] = figures.broken_rules_total;
  json["broken_rules"] = figures.broken_rules;
  json["seconds"] = seconds;
  json["run_seconds"] = figures.run_seconds;
  json["check_seconds"] = figures.check_seconds;
  json["operations_per_s"] = static_cast<double>(report.operations) / std::max(seconds, 1e-9);
  json["operations_checked_per_s"] =
      static_cast<double>(report.operations) / std::max(figures.check_seconds, 1e-9);
  json["words"] = report.words;
  json["machine"] = bench::to_json(environment);
  return json;
}

void print_figures(const HistoryFigures& figures, isolation::Level level) {
  const isolation::Report& report = figures.report;
  fmt::print(
      "{} operations in {} transactions ({} committed, {} killed before the answer), {} kills, {} "
      "merges\n",
      report.operations, report.transactions, report.committed, report.unknown, figures.kills,
      figures.merges);
  fmt::print("{:.1f} s to run, {:.1f} s to check; {} anomalies that {} forbids\n",
             figures.run_seconds, figures.check_seconds, report.forbidden,
             isolation::to_string(level));
  for (std::size_t i = 0; i < isolation::kAnomalyCount; ++i)
    if (report.by_kind[i].allowed != 0)
      fmt::print("allowed and seen: {}\n",
                 isolation::to_string(static_cast<isolation::Anomaly>(i)));
  if (figures.broken_rules_total != 0)
    fmt::print("{} of {} broken rules caught\n", figures.broken_rules_caught,
               figures.broken_rules_total);
}

int run_command(HistoryOptions& options) {
  const Result<isolation::Level> level = isolation::level_named(options.isolation);
  if (!level.ok()) return could_not_run(level.status());
  options.plan.level = *level;
  options.plan.merges = options.merge == "on";
  for (const sessions::BrokenRule rule : sessions::kBrokenRules)
    if (to_string(rule) == options.broken) {
      sessions::break_rule(options.plan, rule);
      options.skips_broken_rules = true;
    }
  if (options.workload == "list-append")
    options.plan.workload = sessions::HistoryWorkload::kListAppend;
  if (options.workload == "register") options.plan.workload = sessions::HistoryWorkload::kRegister;
  if (!options.export_path.empty() &&
      (options.workload == "mixed" || options.operations > kOperationsPerBatch))
    return could_not_run(
        Status(StatusCode::kInvalidArgument,
               fmt::format("--export takes one history of one kind: --workload list-append or "
                           "register, and at most {} operations",
                           kOperationsPerBatch)));
  HistoryFigures figures;
  Status status = run_batches(options, figures);
  if (status.ok() && !options.skips_broken_rules) status = break_rules(options, figures);
  if (!status.ok() && !figures.has_failed) return could_not_run(status);
  if (!status.ok()) fmt::print(stderr, "flugs: {}\n", status.to_string());
  print_figures(figures, options.plan.level);
  const bool is_good = status.ok() && figures.report.forbidden == 0 &&
                       figures.broken_rules_caught == figures.broken_rules_total;
  return finish_with_json(options.json, history_json(options, figures),
                          is_good ? kExitOk : kExitCheckFailed);
}

std::vector<std::string> names_of_rules() {
  std::vector<std::string> names;
  for (const sessions::BrokenRule rule : sessions::kBrokenRules)
    names.emplace_back(to_string(rule));
  return names;
}

void add_plan_options(CLI::App& command, sessions::HistoryPlan& plan) {
  command.add_option("--users", plan.users, "Concurrent users, a thread each")
      ->check(CLI::Range(1U, sessions::kHistoryUsersMax))
      ->capture_default_str();
  command.add_option("--sessions", plan.sessions, "Transactions that each user interleaves")
      ->check(CLI::Range(1U, 16U))
      ->capture_default_str();
  command.add_option("--tables", plan.tables, "Tables of each of three kinds")
      ->check(CLI::Range(1U, sessions::kHistoryTablesMax))
      ->capture_default_str();
  command
      .add_option("--keys", plan.keys,
                  "Objects in use at the same time: the fewer, the more conflicts")
      ->check(CLI::Range(1U, sessions::kHistoryKeysMax))
      ->capture_default_str();
  command.add_option("--seed", plan.seed, "Seed of all random choices of the users")
      ->capture_default_str();
  add_index_option(command, plan.index_place);
  add_clock_option(command, plan.clock);
}

}  // namespace

void add_history(CLI::App& app, Action& action) {
  auto options = std::make_shared<HistoryOptions>();
  CLI::App* command =
      app.add_subcommand("history", "Records random transactions, and finds forbidden anomalies");
  command
      ->add_option("--isolation", options->isolation,
                   "Level of isolation, and the level that is checked for")
      ->check(CLI::IsMember({"read-committed", "snapshot", "serializable"}))
      ->capture_default_str();
  command
      ->add_option("--workload", options->workload,
                   "Kind of operations; mixed: both in the same transactions")
      ->check(CLI::IsMember({"mixed", "list-append", "register"}))
      ->capture_default_str();
  command->add_option("--operations", options->operations, "Reads and writes in total")
      ->check(CLI::Range(std::uint64_t{1'000}, std::uint64_t{1'000'000'000'000}))
      ->capture_default_str();
  command->add_option("--kills", options->kills, "Kills of the database's process")
      ->check(CLI::Range(0U, 10'000'000U))
      ->capture_default_str();
  command->add_option("--merge", options->merge, "Merge the tables during the run")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  add_plan_options(*command, options->plan);
  command->add_flag(
      "--no-broken-rules", options->skips_broken_rules,
      "Leave out the runs with broken rules of visibility, which the checker must notice");
  command
      ->add_option(
          "--broken-rule", options->broken,
          "Run only with this rule broken, all sessions in one thread, and show the findings")
      ->check(CLI::IsMember(names_of_rules()));
  add_new_pool_options(*command, options->pool, nullptr);
  command
      ->add_option("--export", options->export_path,
                   "Write the history for other checkers: Elle's EDN (FILE.edn) or JSON lines")
      ->type_name("FILE");
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
