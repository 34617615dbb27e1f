#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "bench/tpcc/tpcc_client.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_reader.h"
#include "tools/report/run_counters.h"
#include "tools/report/tpcc_peers.h"
#include "tools/report/tpcc_report.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/run_options.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"
#include "tools/support/tpcc_options.h"

namespace flugs::tools {

namespace {

struct TpccCommandOptions {
  PoolRunOptions database;
  bench::TpccOptions population;
  std::uint32_t users = 1;
  double seconds = 10;
  double ramp_up = 2;
  bench::TpccMix mix = bench::TpccMix::kFull;
  bool check = true;
  std::string peers = "none";
  std::string json;

  bench::TpccRunOptions run() const {
    bench::TpccRunOptions run;
    run.population = population;
    run.users = users;
    run.loop.ramp_up_seconds = ramp_up;
    run.loop.seconds = seconds;
    run.mix = mix;
    run.seed = population.seed;
    return run;
  }
};

/// Everything a run gave.
struct TpccFigures {
  std::string pool_path;
  bench::TpccLoad load;
  bench::TpccRunResult run;
  RunCounters counters;
  bench::TpccReport report;
  std::uint64_t dram_bytes = 0;
  TpccPeerRuns peers;

  bool all_held() const {
    return report.all_held() &&
           std::all_of(peers.begin(), peers.end(), [](const auto& peer) { return peer->all_held; });
  }
};

bench::Json figures_json(const TpccCommandOptions& options, const TpccFigures& figures) {
  bench::Json json = options.database.json(figures.counters.after);
  json["warehouses"] = options.population.warehouses;
  json["customers_per_district"] = options.population.customers_per_district;
  json["items"] = options.population.items;
  json["users"] = options.users;
  json["mix"] = to_string(options.mix);
  json["ramp_up_seconds"] = options.ramp_up;
  json["seed"] = options.population.seed;
  json.update(tpcc_run_json(figures.run));
  json.update(figures.counters.json(figures.run.executed()));
  json["conditions"] = tpcc_conditions_json(figures.report);
  json["problems"] = figures.report.problems();
  if (!figures.peers.empty()) json["peers"] = tpcc_peers_json(figures.run, figures.peers);
  json["dram_bytes"] = figures.dram_bytes;
  json["load"] = {{"rows", figures.load.rows},
                  {"order_lines", figures.load.order_lines},
                  {"seconds", figures.load.seconds},
                  {"rows_per_s", static_cast<double>(figures.load.rows) / figures.load.seconds},
                  {"threads", 1}};
  return json;
}

void print_figures(const TpccCommandOptions& options, const TpccFigures& figures) {
  const Statistics& after = figures.counters.after;
  fmt::print(
      "TPC-C's transactions, {} warehouse{}, {} user{}, {} mix, no think times, {:.1f} s after "
      "{:.1f} s ramp-up\n",
      options.population.warehouses, options.population.warehouses == 1 ? "" : "s", options.users,
      options.users == 1 ? "" : "s", to_string(options.mix), figures.run.loop.seconds,
      options.ramp_up);
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, after.medium,
             options.database.guarantee(after));
  fmt::print("loaded {} rows in {:.2f} s ({} rows/s)\n\n", figures.load.rows, figures.load.seconds,
             format_count(static_cast<double>(figures.load.rows) / figures.load.seconds));
  print_tpcc_run(figures.run);
  figures.counters.print(figures.run.executed());
  fmt::print("pool {} ({} used), DRAM {} ({} indexes)\n", format_bytes(after.pool_allocated_bytes),
             format_bytes(after.pool_used_bytes), format_bytes(figures.dram_bytes),
             format_bytes(after.dram_index_bytes));
  if (options.check) print_tpcc_conditions(figures.report);
  if (!figures.peers.empty())
    print_tpcc_peers(figures.run, options.database.guarantee(after), figures.peers);
}

class TpccCommand {
 public:
  explicit TpccCommand(const TpccCommandOptions& options) : options_(options) {}

  Status run(TpccFigures& figures) {
    Result<PoolOfCommand> pool = open_pool(options_.database.pool, options_.database.keep,
                                           bytes_wanted(), options_.database.open(options_.users));
    if (!pool.ok()) return std::move(pool).status();
    figures.pool_path = pool->file.path();
    return run_on(pool->database, figures);
  }

 private:
  std::uint64_t bytes_wanted() const {
    constexpr double kBytesPerSecond = 50e6;  // that a user's transactions add, at most
    return tpcc_pool_bytes(options_.population) +
           static_cast<std::uint64_t>(kBytesPerSecond * options_.users *
                                      (options_.seconds + options_.ramp_up));
  }

  Status run_on(Database& database, TpccFigures& figures) {
    const bench::TpccOptions& population = options_.population;
    const Result<bench::TpccTables> tables =
        bench::create_tpcc_tables(database, population.warehouses);
    if (tables.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool already holds TPC-C's tables, but a run needs a new population: name "
                    "a different pool, or none");
    if (!tables.ok()) return tables.status();
    if (Status s = lay_out_tables(database, options_.database.layout); !s.ok()) return s;
    Result<bench::TpccLoad> load = bench::load_tpcc(
        database, *tables, population, [this](std::uint64_t done, std::uint64_t total) {
          bar_.update("loading", done, total, "orders");
        });
    bar_.clear();
    if (!load.ok()) return std::move(load).status();
    figures.load = *load;
    if (options_.database.merge.first)
      if (Status s = merge_everything(database); !s.ok()) return s;
    for (const TableId table : database.tables())
      if (Status s = database.set_merge_policy(table, policy_of(options_.database.merge)); !s.ok())
        return s;
    if (Status s = execute(database, *tables, figures); !s.ok()) return s;
    if (!options_.check) return {};
    bar_.update("checking", 0, 0);
    Result<bench::TpccReport> report = bench::check_tpcc(database, *tables, population);
    bar_.clear();
    if (!report.ok()) return std::move(report).status();
    figures.report = *std::move(report);
    return {};
  }

  Status execute(Database& database, const bench::TpccTables& tables, TpccFigures& figures) {
    bench::TpccRunOptions run = options_.run();
    run.loop.sampling_begins = [&] { figures.counters.before = database.statistics(); };
    run.loop.sampling_ends = [&] {
      figures.counters.after = database.statistics();
      figures.dram_bytes = bench::dram_bytes();
    };
    run.loop.progress = [this](double gone, double all) {
      bar_.update("running", static_cast<std::uint64_t>(gone * 1000),
                  static_cast<std::uint64_t>(all * 1000));
      return true;
    };
    Result<bench::TpccRunResult> result = bench::run_tpcc(
        [&](std::uint32_t) -> Result<std::unique_ptr<bench::TpccSession>> {
          Result<std::unique_ptr<bench::TpccClient>> client = bench::TpccClient::make(
              database, tables, options_.database.isolation, options_.database.commit);
          if (!client.ok()) return std::move(client).status();
          return std::unique_ptr<bench::TpccSession>(*std::move(client));
        },
        run);
    bar_.clear();
    if (!result.ok()) return std::move(result).status();
    figures.run = *std::move(result);
    return {};
  }

  const TpccCommandOptions& options_;
  ProgressBar bar_;
};

int run_command(const TpccCommandOptions& options) {
  if (options.peers != "none")
    if (Status s = engine_program("tpcc", options.peers).status(); !s.ok()) return could_not_run(s);
  const auto figures = std::make_unique<TpccFigures>();
  Status status = TpccCommand(options).run(*figures);
  // The pool is closed, and gone unless it is kept: the engines do not share the memory.
  if (status.ok() && options.peers != "none")
    status = run_tpcc_peers(options.run(), figures->pool_path, figures->counters.after.medium,
                            figures->peers);
  if (!status.ok()) return could_not_run(status);
  print_figures(options, *figures);
  return finish_with_json(options.json, figures_json(options, *figures),
                          figures->all_held() ? kExitOk : kExitCheckFailed);
}

void add_population_options(CLI::App& command, bench::TpccOptions& population) {
  command.add_option("--warehouses", population.warehouses, "Size of the population")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command
      .add_option("--customers", population.customers_per_district,
                  "Customers and orders of each district; any other number differs from TPC-C")
      ->check(CLI::Range(10u, 3000u))
      ->capture_default_str();
  command.add_option("--items", population.items, "Items; any other number differs from TPC-C")
      ->check(CLI::Range(100u, 100'000u))
      ->capture_default_str();
  command.add_option("--seed", population.seed, "Seed of all random numbers")
      ->capture_default_str();
}

}  // namespace

void add_tpcc(CLI::App& app, Action& action) {
  auto options = std::make_shared<TpccCommandOptions>();
  CLI::App* command =
      app.add_subcommand("tpcc", "Runs TPC-C: rates, response times, consistency conditions");
  add_run_pool_options(*command, options->database);
  add_population_options(*command, options->population);
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kTpccUsersMax))
      ->capture_default_str();
  add_period_options(*command, options->seconds, options->ramp_up);
  add_tpcc_mix_option(*command, options->mix);
  command->add_flag("!--no-check", options->check, "Do not check the conditions afterwards");
  add_run_options(*command, options->database);
  command
      ->add_option("--peers", options->peers,
                   "Another engine to run the same workload afterwards, on the same medium")
      ->check(CLI::IsMember({"none", "lmdb"}))
      ->capture_default_str();
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
