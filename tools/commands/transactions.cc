#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/loads/starvation_load.h"
#include "bench/loads/transaction_load.h"
#include "bench/support/environment.h"
#include "tools/support/command.h"
#include "tools/support/latency_text.h"
#include "tools/support/pool_file.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct TransactionsOptions {
  bench::SkewOptions skew;
  bench::LargeOptions large;
  bench::StarvationOptions starvation;
  std::uint32_t rounds = 3;
  IndexPlace index_place = kDefaultIndexPlace;
  std::string pool;
  bool keep = false;
  std::string json;
};

struct Round {
  bench::SkewFigures snapshot;
  bench::SkewFigures serializable;
  double ratio() const noexcept {
    return serializable.per_second() / std::max(snapshot.per_second(), 1e-9);
  }
};

struct TransactionsFigures {
  std::vector<Round> rounds;
  bench::LargeFigures large;
  bench::StarvationFigures runs;   // a long writer that runs, as the short ones do
  bench::StarvationFigures locks;  // one that locks
  Status verified;
  Statistics statistics;

  /// The round whose ratio is the median.
  const Round& median() const {
    std::vector<const Round*> sorted;
    sorted.reserve(rounds.size());
    for (const Round& round : rounds) sorted.push_back(&round);
    std::sort(sorted.begin(), sorted.end(),
              [](const Round* a, const Round* b) { return a->ratio() < b->ratio(); });
    return *sorted[sorted.size() / 2];
  }
  bool held() const {
    const auto has_starved = [](const bench::StarvationFigures& f) {
      return f.committed() != f.runs.size() || f.lost != 0;
    };
    return verified.ok() && large.wrong == 0 && !has_starved(runs) && !has_starved(locks) &&
           std::all_of(rounds.begin(), rounds.end(),
                       [](const Round& round) { return round.serializable.pairs_broken == 0; });
  }
};

// The levels take turns, so that what the machine does meanwhile meets both.
Status measure(const TransactionsOptions& options, Database& database,
               TransactionsFigures& figures) {
  if (Status s = bench::create_accounts(database, options.skew); !s.ok()) return s;
  for (std::uint32_t i = 0; i < options.rounds; ++i) {
    Round round;
    for (const auto& [isolation, into] :
         {std::pair(Isolation::kSnapshot, &round.snapshot),
          std::pair(Isolation::kSerializable, &round.serializable)}) {
      Result<bench::SkewFigures> run = bench::run_skew(database, options.skew, isolation);
      if (!run.ok()) return std::move(run).status();
      *into = *run;
    }
    figures.rounds.push_back(round);
  }
  Result<bench::LargeFigures> large = bench::run_large(database, options.large);
  if (!large.ok()) return std::move(large).status();
  figures.large = *std::move(large);
  if (Status s = bench::create_starvation_rows(database, options.starvation); !s.ok()) return s;
  for (const auto& [how, into] : {std::pair(bench::LongWriter::kRuns, &figures.runs),
                                  std::pair(bench::LongWriter::kLocks, &figures.locks)}) {
    Result<bench::StarvationFigures> run = bench::run_starvation(database, options.starvation, how);
    if (!run.ok()) return std::move(run).status();
    *into = *std::move(run);
  }
  figures.statistics = database.statistics();
  figures.verified = database.check();
  return {};
}

bool has_ratio(const bench::LargeFigures& large) {
  return large.idle.count() != 0 && large.meanwhile.count() != 0;
}

bench::Json to_json(const bench::SkewFigures& figures) {
  return {{"committed", figures.committed},
          {"conflicts", figures.conflicts},
          {"seconds", figures.seconds},
          {"transactions_per_s", figures.per_second()},
          {"pairs_broken", figures.pairs_broken}};
}

bench::Json to_json(const bench::StarvationFigures& figures) {
  bench::Json runs = bench::Json::array();
  for (const bench::StarvationRun& run : figures.runs)
    runs.push_back({{"ms", run.ms},
                    {"attempts", run.attempts},
                    {"committed", run.has_committed},
                    {"short_per_s", run.short_per_second},
                    {"short_alone_per_s", run.short_alone_per_second}});
  return {{"runs", figures.runs.size()},
          {"committed", figures.committed()},
          {"ms_median", figures.ms_median()},
          {"ms_max", figures.ms_max()},
          {"attempts_max", figures.attempts_max()},
          {"short_share_meanwhile", figures.short_share()},
          {"short_ms_max", figures.short_ms_max},
          {"lost_updates", figures.lost},
          {"each", runs}};
}

bench::Json to_json(const TransactionsOptions& options, const TransactionsFigures& figures) {
  const bench::Environment environment = bench::environment();
  const bench::LargeFigures& large = figures.large;
  bench::Json rounds = bench::Json::array();
  for (const Round& round : figures.rounds)
    rounds.push_back({{"snapshot", to_json(round.snapshot)},
                      {"serializable", to_json(round.serializable)},
                      {"ratio", round.ratio()}});
  return {{"commit", environment.commit},
          {"medium", figures.statistics.medium},
          {"index", to_string(options.index_place)},
          {"skew",
           {{"rows", options.skew.rows},
            {"users", options.skew.users},
            {"serializable_share_of_snapshot", figures.median().ratio()},
            {"rounds", rounds}}},
          {"large",
           {{"rows", options.large.rows},
            {"load_seconds", large.load_seconds},
            {"statements_seconds", large.statements_seconds},
            {"commit_ms", large.commit_ms},
            {"reader_idle", bench::to_json(large.idle)},
            {"reader_meanwhile", bench::to_json(large.meanwhile)},
            {"reader_during_commit", bench::to_json(large.during_commit)},
            {"reader_p99_ratio",
             has_ratio(large) ? bench::Json(large.p99_ratio()) : bench::Json(nullptr)},
            {"wrong_reads", large.wrong}}},
          {"starvation",
           {{"rows", options.starvation.rows},
            {"hot_rows", options.starvation.hot_rows},
            {"users", options.starvation.users},
            {"run", to_json(figures.runs)},
            {"lock", to_json(figures.locks)}}},
          {"verified", figures.verified.ok()},
          {"machine", bench::to_json(environment)}};
}

void print_starvation(const TransactionsOptions& options, const TransactionsFigures& figures) {
  fmt::print("\na long writer of {} rows among {} short ones of its last {}, {} times\n",
             options.starvation.rows, options.starvation.users, options.starvation.hot_rows,
             options.starvation.runs);
  TextTable table({"", "all in Database::run", "it locks, they insist"});
  const auto add = [&](const std::string& name, auto&& value) {
    table.add({name, value(figures.runs), value(figures.locks)});
  };
  using Figures = bench::StarvationFigures;
  add("committed", [](const Figures& f) { return fmt::format("{}", f.committed()); });
  add("median ms", [](const Figures& f) { return fmt::format("{:.1f}", f.ms_median()); });
  add("longest ms", [](const Figures& f) { return fmt::format("{:.1f}", f.ms_max()); });
  add("most attempts", [](const Figures& f) { return fmt::format("{}", f.attempts_max()); });
  add("short ones meanwhile",
      [](const Figures& f) { return fmt::format("{:.1f} %", 100 * f.short_share()); });
  add("longest short one ms",
      [](const Figures& f) { return fmt::format("{:.1f}", f.short_ms_max); });
  fmt::print("{}", table.to_string());
}

void print(const TransactionsOptions& options, const TransactionsFigures& figures,
           const std::string& path) {
  fmt::print("pool: {}, medium {}: {}\n\n", path, figures.statistics.medium,
             figures.statistics.guarantee);
  fmt::print("write skew: {} rows in pairs, {} users, median of {} rounds of {:.1f} s a level\n",
             options.skew.rows, options.skew.users, options.rounds, options.skew.seconds);
  TextTable table({"", "snapshot", "serializable"});
  const Round& round = figures.median();
  table.add({"transactions/s", format_count(round.snapshot.per_second()),
             format_count(round.serializable.per_second())});
  const auto share = [](const bench::SkewFigures& f) {
    const auto all = static_cast<double>(std::max<std::uint64_t>(f.committed + f.conflicts, 1));
    return fmt::format("{:.2f} %", 100.0 * static_cast<double>(f.conflicts) / all);
  };
  table.add({"conflicts", share(round.snapshot), share(round.serializable)});
  table.add({"pairs found broken", std::to_string(round.snapshot.pairs_broken),
             std::to_string(round.serializable.pairs_broken)});
  fmt::print("{}serializable is {:.1f} % of snapshot\n\n", table.to_string(), 100 * round.ratio());

  const bench::LargeFigures& large = figures.large;
  fmt::print(
      "one transaction that updates {} rows: {:.2f} s of statements, then commit {:.1f} ms\n",
      options.large.rows, large.statements_seconds, large.commit_ms);
  TextTable reader({"a reader's transaction", "alone", "meanwhile", "during commit"});
  for (const auto& [name, fraction] :
       {std::pair("p50", 0.5), std::pair("p99", 0.99), std::pair("p99.9", 0.999)})
    reader.add({name, format_percentile(large.idle, fraction),
                format_percentile(large.meanwhile, fraction),
                format_percentile(large.during_commit, fraction)});
  reader.add({"longest", format_percentile(large.idle, 1), format_percentile(large.meanwhile, 1),
              format_percentile(large.during_commit, 1)});
  fmt::print("{}{}; wrong reads: {}; check: {}\n", reader.to_string(),
             has_ratio(large)
                 ? fmt::format("p99 meanwhile is {:.2f} times the p99 alone", large.p99_ratio())
                 : "no reader's transaction ended meanwhile",
             large.wrong, figures.verified.to_string());
  print_starvation(options, figures);
}

int run_command(TransactionsOptions options) {
  if (options.skew.rows % 2 != 0)
    return could_not_run(
        Status(StatusCode::kInvalidArgument,
               fmt::format("--skew-rows {}: must be even, because the rows form pairs",
                           options.skew.rows)));
  if (options.starvation.hot_rows > options.starvation.rows)
    return could_not_run(Status(StatusCode::kInvalidArgument,
                                fmt::format("--hot-rows {} cannot be more than --long-rows {}",
                                            options.starvation.hot_rows, options.starvation.rows)));
  options.large.seed = options.skew.seed;
  options.starvation.seed = options.skew.seed;
  // Each row is there twice, for a while; 64 bytes, and its entries in the indexes.
  const std::uint64_t bytes = options.large.rows * 256 + (std::uint64_t{512} << 20);
  OpenOptions open;
  open.mode = OpenMode::kCreate;
  open.max_bytes = std::max<std::uint64_t>(2 * bytes, std::uint64_t{4} << 30);
  open.index_place = options.index_place;
  Result<PoolOfCommand> pool = open_pool(options.pool, options.keep, bytes, open);
  if (!pool.ok()) return could_not_run(pool.status());
  TransactionsFigures figures;
  if (const Status s = measure(options, pool->database, figures); !s.ok()) return could_not_run(s);
  print(options, figures, pool->file.path());
  return finish_with_json(options.json, to_json(options, figures),
                          figures.held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_transactions(CLI::App& app, Action& action) {
  auto options = std::make_shared<TransactionsOptions>();
  CLI::App* command = app.add_subcommand(
      "transactions", "Measures isolation levels, one large transaction, and starvation");
  add_new_pool_options(*command, options->pool, &options->keep);
  add_index_option(*command, options->index_place);
  command
      ->add_option("--skew-rows", options->skew.rows, "Rows, in pairs, where write skew is likely")
      ->check(CLI::Range(2, 1'000'000))
      ->capture_default_str();
  command
      ->add_option("--users", options->skew.users, "Concurrent users of these rows, a thread each")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  command
      ->add_option("--seconds", options->skew.seconds,
                   "Seconds of a round, for each level of isolation")
      ->check(real_range(0.01, 3600))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "Rounds, of which the median is printed")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rows", options->large.rows, "Rows that the large transaction updates")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000}))
      ->capture_default_str();
  command
      ->add_option("--idle-seconds", options->large.idle_seconds,
                   "Seconds of its reader alone, before it")
      ->check(real_range(0.01, 3600))
      ->capture_default_str();
  command->add_option("--long-runs", options->starvation.runs, "Long writers among short ones")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  command->add_option("--long-rows", options->starvation.rows, "Rows that each long writer updates")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command
      ->add_option("--hot-rows", options->starvation.hot_rows,
                   "Last rows of the long writer, which the short writers update")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command->add_option("--long-users", options->starvation.users, "Short writers, a thread each")
      ->check(CLI::Range(1, 128))
      ->capture_default_str();
  command->add_option("--seed", options->skew.seed, "Seed of all random numbers")
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
