// Users of TPC-C beside streams of CH-benCHmark's queries (docs/benchmarks.md, section 11).

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/htap/htap_run.h"
#include "bench/support/environment.h"
#include "bench/support/random.h"
#include "bench/tpcc/tpcc_history.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_reader.h"
#include "flugs/try.h"
#include "tools/report/htap_report.h"
#include "tools/report/tpcc_report.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/run_options.h"
#include "tools/support/tatp_options.h"
#include "tools/support/tpcc_options.h"

namespace flugs::tools {

namespace {

constexpr std::uint32_t kStreamsMax = 64;
/// Two users may share a warehouse. Then one user may deliver an order of the other whose entry
/// time is later than the delivery time. Q4 does not count that order, and an equation fails. A
/// delivery takes the oldest order, so this needs a district with almost no open orders. With 1000
/// customers, 300 orders are open in each district, and their number grows.
constexpr std::uint32_t kSharedCustomersMin = 1000;

struct HtapOptions {
  PoolRunOptions database;
  bench::TpccOptions population;
  std::uint32_t users = std::min(bench::usable_cores(), bench::kTpccUsersMax);
  std::uint32_t streams = std::min(bench::usable_cores(), kStreamsMax);
  std::uint32_t threads = 1;
  double seconds = 10;
  double ramp_up = 2;
  bool check = true;
  std::string json;

  HtapOptions() {
    population.warehouses = 2;
    database.merge.first = true;
  }

  bench::HtapRunOptions run(std::uint32_t with_users, std::uint32_t with_streams) const {
    bench::HtapRunOptions run;
    run.transactions.population = population;
    run.transactions.users = with_users;
    run.transactions.loop.ramp_up_seconds = ramp_up;
    run.transactions.loop.seconds = seconds;
    run.transactions.seed = population.seed;
    run.isolation = database.isolation;
    run.streams = with_streams;
    run.query_threads = threads;
    run.period = ch_period(population);
    return run;
  }
};

/// Everything a run gave.
struct HtapFigures {
  HtapReport report;
  Statistics statistics;  ///< of the last pool
  bench::TpccLoad load;   ///< likewise
  bench::TpccHistory history;
};

struct Clients {
  std::uint32_t users = 0;
  std::uint32_t streams = 0;
};

/// All pairs but that of nobody, in an order drawn from the seed: what changes on the machine in
/// the course of the runs must not look like an effect of their clients.
std::vector<Clients> drawn_order(const HtapOptions& options) {
  std::vector<Clients> order;
  for (std::uint32_t users = 0; users <= options.users; ++users)
    for (std::uint32_t streams = 0; streams <= options.streams; ++streams)
      if (users + streams > 0) order.push_back({users, streams});
  bench::Random random(options.population.seed);
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

bench::Json figures_json(const HtapOptions& options, const HtapFigures& figures) {
  bench::Json json = options.database.json(figures.statistics);
  // Each point has its own; a pool of this command lies on no disk.
  for (const char* name : {"pool_bytes", "pool_used_bytes", "dram_index_bytes", "hint_index_bytes",
                           "restart_budget_ms", "journal_mb"})
    json.erase(name);
  json["query_isolation"] = "snapshot";
  json["warehouses"] = options.population.warehouses;
  json["customers_per_district"] = options.population.customers_per_district;
  json["items"] = options.population.items;
  json["seed"] = options.population.seed;
  json["users_max"] = options.users;
  json["streams_max"] = options.streams;
  json["query_threads"] = options.threads;
  json["seconds"] = options.seconds;
  json["ramp_up_seconds"] = options.ramp_up;
  json["load"] = {{"rows", figures.load.rows},
                  {"order_lines", figures.load.order_lines},
                  {"seconds", figures.load.seconds},
                  {"orders_entered", figures.history.orders_entered},
                  {"orders_delivered", figures.history.orders_delivered}};
  json.update(figures.report.json());
  return json;
}

void print_figures(const HtapOptions& options, const HtapFigures& figures) {
  fmt::print(
      "TPC-C's transactions beside CH-benCHmark's queries, {} warehouse{}, {} thread{} a query, "
      "{:.1f} s after {:.1f} s\nramp-up, {} runs in a drawn order\n",
      options.population.warehouses, options.population.warehouses == 1 ? "" : "s", options.threads,
      options.threads == 1 ? "" : "s", options.seconds, options.ramp_up,
      figures.report.points.size());
  fmt::print("pool: new for each run, medium {}: {}\n", figures.statistics.medium,
             options.database.guarantee(figures.statistics));
  fmt::print("isolation: {} for transactions, a snapshot for each query\n",
             to_string(options.database.isolation));
  fmt::print("each population: {} rows ({} order lines), then {} orders entered, {} delivered{}\n",
             figures.load.rows, figures.load.order_lines, figures.history.orders_entered,
             figures.history.orders_delivered,
             options.database.merge.first ? ", then everything merged" : "");
  figures.report.print();
}

class HtapCommand {
 public:
  explicit HtapCommand(const HtapOptions& options) : options_(options) {}

  Status run(HtapFigures& figures) {
    figures.report.query_threads = options_.threads;
    figures.report.processors = bench::usable_cores();
    figures.report.checks_conditions = options_.check;
    const std::vector<Clients> order = drawn_order(options_);
    for (const Clients& clients : order) {
      ++number_;
      point_ = fmt::format("run {} of {}: ", number_, order.size());
      Status status = measure(clients, figures);
      bar_.clear();
      if (!status.ok()) return status;
    }
    std::sort(figures.report.points.begin(), figures.report.points.end(),
              [](const HtapPoint& a, const HtapPoint& b) {
                return a.rate.users != b.rate.users ? a.rate.users < b.rate.users
                                                    : a.rate.streams < b.rate.streams;
              });
    return {};
  }

 private:
  std::uint64_t bytes_wanted(std::uint32_t users) const {
    constexpr double kBytesPerSecond = 50e6;  // that a user's transactions add, at most
    return tpcc_pool_bytes(options_.population) +
           static_cast<std::uint64_t>(kBytesPerSecond * users *
                                      (options_.seconds + options_.ramp_up));
  }

  /// One run, on a pool of its own.
  Status measure(const Clients& clients, HtapFigures& figures) {
    FLUGS_ASSIGN(PoolOfCommand pool,
                 open_pool("", false, bytes_wanted(clients.users),
                           options_.database.open(clients.users + clients.streams)));
    Database& database = pool.database;
    FLUGS_ASSIGN(const bench::TpccTables tables,
                 bench::create_tpcc_tables(database, options_.population.warehouses));
    FLUGS_TRY(lay_out_tables(database, options_.database.layout));
    FLUGS_ASSIGN(const KeyId freshness, bench::create_freshness_table(database, clients.users));
    FLUGS_TRY(fill(database, tables, figures));
    if (options_.database.merge.first) {
      bar_.update(point_ + "merging", 0, 0);
      FLUGS_TRY(merge_everything(database));
    }
    for (const TableId table : database.tables())
      FLUGS_TRY(database.set_merge_policy(table, policy_of(options_.database.merge)));
    FLUGS_TRY(execute(database, tables, freshness, clients, figures));
    return options_.check ? check(database, tables, figures.report.points.back()) : Status();
  }

  std::function<void(std::uint64_t, std::uint64_t)> telling(const char* what, const char* unit) {
    return [this, what, unit](std::uint64_t done, std::uint64_t total) {
      bar_.update(point_ + what, done, total, unit);
    };
  }

  /// The population, and the history without which most queries give zeros.
  Status fill(Database& database, const bench::TpccTables& tables, HtapFigures& figures) {
    const bench::TpccOptions& population = options_.population;
    FLUGS_ASSIGN(figures.load,
                 bench::load_tpcc(database, tables, population, telling("loading", "orders")));
    bench::TpccHistoryOptions rounds;
    rounds.rounds = bench::enough_rounds(population);
    rounds.seed = population.seed;
    FLUGS_ASSIGN(figures.history, bench::run_tpcc_history(database, tables, population, rounds,
                                                          telling("history", "transactions")));
    return {};
  }

  Status execute(Database& database, const bench::TpccTables& tables, KeyId freshness,
                 const Clients& clients, HtapFigures& figures) {
    bench::HtapRunOptions run = options_.run(clients.users, clients.streams);
    RunCounters counters;
    std::uint64_t dram_bytes = 0;
    run.transactions.loop.sampling_begins = [&] { counters.before = database.statistics(); };
    run.transactions.loop.sampling_ends = [&] {
      counters.after = database.statistics();
      dram_bytes = bench::dram_bytes();
    };
    run.transactions.loop.progress = [this](double gone, double all) {
      bar_.update(point_ + "running", static_cast<std::uint64_t>(gone * 1000),
                  static_cast<std::uint64_t>(all * 1000));
      return true;
    };
    FLUGS_ASSIGN(const bench::HtapRunResult result,
                 bench::run_htap(database, tables, freshness, run));
    figures.report.points.emplace_back(number_, run, result, counters);
    figures.report.points.back().json["dram_bytes"] = dram_bytes;
    figures.statistics = counters.after;
    return {};
  }

  Status check(Database& database, const bench::TpccTables& tables, HtapPoint& point) {
    bar_.update(point_ + "checking", 0, 0);
    FLUGS_ASSIGN(const bench::TpccReport report,
                 bench::check_tpcc(database, tables, options_.population));
    point.json["conditions"] = tpcc_conditions_json(report);
    point.add_problems(report.problems());
    return {};
  }

  const HtapOptions& options_;
  std::uint32_t number_ = 0;  ///< of the run
  std::string point_;         ///< the same in words
  ProgressBar bar_;
};

Status check_options(const HtapOptions& options) {
  if (options.users <= options.population.warehouses ||
      options.population.customers_per_district >= kSharedCustomersMin)
    return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("with more --users than --warehouses, --customers must be at least {}: "
                            "else a delivery may be dated before the entry of its order",
                            kSharedCustomersMin));
}

int run_command(const HtapOptions& options) {
  if (Status s = check_options(options); !s.ok()) return could_not_run(s);
  HtapFigures figures;
  Status status = HtapCommand(options).run(figures);
  if (!status.ok()) return could_not_run(status);
  print_figures(options, figures);
  return finish_with_json(options.json, figures_json(options, figures),
                          figures.report.all_held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_htap(CLI::App& app, Action& action) {
  auto options = std::make_shared<HtapOptions>();
  CLI::App* command =
      app.add_subcommand("htap", "Runs TPC-C's transactions beside CH-benCHmark's queries");
  add_ch_population_options(*command, options->population);
  command
      ->add_option("--users", options->users, "Largest number of concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kTpccUsersMax))
      ->capture_default_str();
  command->add_option("--streams", options->streams, "Largest number of streams of queries")
      ->check(CLI::Range(1u, kStreamsMax))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads for each query")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command
      ->add_option("--seed", options->population.seed,
                   "Seed of all random numbers and of the order of runs")
      ->capture_default_str();
  add_period_options(*command, options->seconds, options->ramp_up);
  command->add_flag("!--no-merge-first", options->database.merge.first,
                    "Do not merge all rows before each run");
  add_background_merge_options(*command, options->database.merge);
  command->add_flag("!--no-check", options->check,
                    "Do not check TPC-C's consistency conditions after each run");
  add_index_option(*command, options->database.index_place);
  add_layout_option(*command, options->database.layout);
  add_isolation_option(*command, options->database.isolation);
  add_clock_option(*command, options->database.clock);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
