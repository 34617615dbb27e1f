#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/ch_run.h"
#include "bench/environment.h"
#include "bench/tpcc_history.h"
#include "tools/cleanup.h"
#include "tools/command.h"
#include "tools/pool_file.h"
#include "tools/progress_bar.h"
#include "tools/tatp_options.h"
#include "tools/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::int64_t kDayUs = 86'400'000'000;

struct ChOptions {
  std::string pool;
  bench::TpccOptions population;
  std::uint32_t threads = default_load_threads();
  std::uint32_t runs = 5;
  bool history = true;
  bool explain = false;
  bool keep = false;
  std::string json;

  bench::ChRunOptions run() const {
    bench::ChRunOptions run;
    run.threads = threads;
    run.runs = runs;
    run.period.since_us = population.first_entry_us - kDayUs;
    run.period.until_us = population.first_entry_us + 36'525 * kDayUs;
    return run;
  }
};

/// Everything a run gave.
struct ChFigures {
  std::string pool_path;
  bench::TpccLoad load;
  bench::TpccHistory history;
  std::vector<bench::ChQueryFigures> queries;
  std::vector<std::string> problems;
  Statistics statistics;
  std::uint64_t dram_bytes = 0;
};

std::uint64_t tpcc_pool_bytes(const bench::TpccOptions& population) {
  // Strings, rows, stamps and dictionaries, and the history's versions: see docs/benchmarks.md.
  constexpr std::uint64_t kBytesPerCustomer = 5'000;  // with its order, that one's lines, versions
  constexpr std::uint64_t kBytesPerStock = 800;
  return kBytesPerCustomer * population.orders() +
         kBytesPerStock * population.items * population.warehouses + (std::uint64_t{512} << 20);
}

bench::Json queries_json(const ChFigures& figures) {
  bench::Json queries = bench::Json::array();
  for (const bench::ChQueryFigures& query : figures.queries) {
    const auto [fastest, slowest] = std::minmax_element(query.ms.begin(), query.ms.end());
    queries.push_back({{"name", query.name},
                       {"flugs_ms", query.median_ms()},
                       {"min_ms", *fastest},
                       {"max_ms", *slowest},
                       {"rows", query.rows},
                       {"rows_scanned", query.statistics.rows_scanned},
                       {"rows_skipped", query.statistics.rows_skipped},
                       {"memory_bytes_peak", query.statistics.memory_bytes_peak},
                       {"repeatable", query.is_repeatable}});
  }
  return queries;
}

bench::Json figures_json(const ChOptions& options, const ChFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = figures.statistics.medium;
  json["flush"] = figures.statistics.flush;
  json["guarantee"] = figures.statistics.guarantee;
  json["warehouses"] = options.population.warehouses;
  json["customers_per_district"] = options.population.customers_per_district;
  json["items"] = options.population.items;
  json["threads"] = options.threads;
  json["runs"] = options.runs;
  json["seed"] = options.population.seed;
  json["queries"] = queries_json(figures);
  json["geometric_mean_ms"] = bench::geometric_mean_ms(figures.queries);
  json["problems"] = figures.problems;
  json["load"] = {{"rows", figures.load.rows},
                  {"order_lines", figures.load.order_lines},
                  {"seconds", figures.load.seconds}};
  json["history"] = {{"orders_entered", figures.history.orders_entered},
                     {"orders_rolled_back", figures.history.orders_rolled_back},
                     {"payments", figures.history.payments},
                     {"orders_delivered", figures.history.orders_delivered},
                     {"seconds", figures.history.seconds}};
  json["pool_bytes"] = figures.statistics.pool_allocated_bytes;
  json["pool_used_bytes"] = figures.statistics.pool_used_bytes;
  json["dram_bytes"] = figures.dram_bytes;
  json["dram_index_bytes"] = figures.statistics.dram_index_bytes;
  json["machine"] = bench::to_json(environment);
  return json;
}

void print_figures(const ChOptions& options, const ChFigures& figures) {
  const bench::TpccHistory& history = figures.history;
  fmt::print(
      "CH-benCHmark, 11 of its 22 queries, {} warehouse{}, {} thread{}, nothing else running\n",
      options.population.warehouses, options.population.warehouses == 1 ? "" : "s", options.threads,
      options.threads == 1 ? "" : "s");
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, figures.statistics.medium,
             figures.statistics.guarantee);
  fmt::print("loaded {} rows in {:.2f} s ({} order lines)\n", figures.load.rows,
             figures.load.seconds, figures.load.order_lines);
  if (options.history)
    fmt::print("history: {} orders entered, {} delivered, {} payments in {:.2f} s\n",
               history.orders_entered, history.orders_delivered, history.payments, history.seconds);
  TextTable table({fmt::format("query, ms of {} runs", options.runs), "median", "min", "max",
                   "rows", "scanned", "memory", ""});
  for (const bench::ChQueryFigures& query : figures.queries) {
    const auto [fastest, slowest] = std::minmax_element(query.ms.begin(), query.ms.end());
    table.add({fmt::format("{:<3} {}", query.name, query.question),
               fmt::format("{:.2f}", query.median_ms()), fmt::format("{:.2f}", *fastest),
               fmt::format("{:.2f}", *slowest), fmt::format("{}", query.rows),
               format_count(static_cast<double>(query.statistics.rows_scanned)),
               format_bytes(query.statistics.memory_bytes_peak),
               query.is_repeatable ? "" : "NOT REPEATABLE"});
  }
  fmt::print("\n{}\n", table.to_string());
  if (options.explain)
    for (const bench::ChQueryFigures& query : figures.queries)
      fmt::print("{}: {}\n{}\n", query.name, query.question, query.explain);
  fmt::print("geometric mean without Q22 {:.2f} ms\n", bench::geometric_mean_ms(figures.queries));
  fmt::print("pool {} ({} used), DRAM {} ({} indexes)\n",
             format_bytes(figures.statistics.pool_allocated_bytes),
             format_bytes(figures.statistics.pool_used_bytes), format_bytes(figures.dram_bytes),
             format_bytes(figures.statistics.dram_index_bytes));
  fmt::print("sums that must be equal: {}\n", figures.problems.empty() ? "they are" : "NOT EQUAL");
  for (const std::string& problem : figures.problems) fmt::print(stderr, "flugs: {}\n", problem);
}

class ChCommand {
 public:
  explicit ChCommand(const ChOptions& options) : options_(options) {}

  Status run(ChFigures& figures) {
    Result<PoolFile> pool =
        PoolFile::choose(options_.pool, options_.keep, tpcc_pool_bytes(options_.population));
    if (!pool.ok()) return std::move(pool).status();
    if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
    figures.pool_path = pool->path();
    OpenOptions open;
    open.path = pool->path();
    Result<Database> database = Database::open(open);
    if (!database.ok()) return std::move(database).status();
    Status status = fill(*database, figures);
    if (status.ok()) status = query(*database, figures);
    bar_.clear();
    figures.statistics = database->statistics();
    figures.dram_bytes = bench::dram_bytes();
    return status;
  }

 private:
  Status fill(Database& database, ChFigures& figures) {
    const bench::TpccOptions& population = options_.population;
    const Result<bench::TpccTables> tables =
        bench::create_tpcc_tables(database, population.warehouses);
    if (tables.code() == StatusCode::kAlreadyExists)
      return Status(StatusCode::kAlreadyExists,
                    "the pool holds TPC-C's tables already; a run needs a fresh population: name "
                    "another pool, or none");
    if (!tables.ok()) return tables.status();
    Result<bench::TpccLoad> load = bench::load_tpcc(
        database, *tables, population,
        [this](std::uint64_t done, std::uint64_t total) { bar_.update("loading", done, total); });
    if (!load.ok()) return std::move(load).status();
    figures.load = *load;
    if (!options_.history) return {};
    bench::TpccHistoryOptions rounds;
    rounds.rounds = bench::enough_rounds(population);
    rounds.seed = population.seed;
    Result<bench::TpccHistory> history = bench::run_tpcc_history(
        database, *tables, population, rounds,
        [this](std::uint64_t done, std::uint64_t total) { bar_.update("history", done, total); });
    if (!history.ok()) return std::move(history).status();
    figures.history = *history;
    return {};
  }

  Status query(Database& database, ChFigures& figures) {
    bench::ChRunOptions run = options_.run();
    run.progress = [this](std::uint64_t done, std::uint64_t total) {
      bar_.update("queries", done, total);
    };
    Result<std::vector<bench::ChQueryFigures>> queries = bench::run_ch(database, run);
    if (!queries.ok()) return std::move(queries).status();
    figures.queries = std::move(*queries);
    Result<std::vector<std::string>> problems = bench::check_ch(database, run);
    if (!problems.ok()) return std::move(problems).status();
    figures.problems = std::move(*problems);
    return {};
  }

  const ChOptions& options_;
  ProgressBar bar_;
};

int run_command(const ChOptions& options) {
  ChFigures figures;
  Status status = ChCommand(options).run(figures);
  if (!status.ok()) return could_not_run(status);
  print_figures(options, figures);
  const bool is_good =
      figures.problems.empty() &&
      std::all_of(figures.queries.begin(), figures.queries.end(),
                  [](const bench::ChQueryFigures& query) { return query.is_repeatable; });
  return finish_with_json(options.json, figures_json(options, figures),
                          is_good ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_ch(CLI::App& app, Action& action) {
  auto options = std::make_shared<ChOptions>();
  CLI::App* command = app.add_subcommand(
      "ch", "CH-benCHmark: TPC-C's tables after some history, analytic queries on them");
  command
      ->add_option("--pool", options->pool,
                   "Pool to use; one that exists gets the tables of TPC-C and is kept, a new one "
                   "is removed afterwards")
      ->type_name("PATH");
  command->add_option("--warehouses", options->population.warehouses, "Size of the population")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command
      ->add_option("--customers", options->population.customers_per_district,
                   "Customers, and orders, of each district; another number is not CH-benCHmark")
      ->check(CLI::Range(10u, 3000u))
      ->capture_default_str();
  command
      ->add_option("--items", options->population.items,
                   "Items; another number is not CH-benCHmark")
      ->check(CLI::Range(100u, 100'000u))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that work on a query")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Runs of each query, after one to warm up")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command->add_flag("!--no-history", options->history,
                    "Query the population as it was loaded; most results are zero then");
  command->add_flag("--explain", options->explain, "Print how each query was executed");
  command->add_option("--seed", options->population.seed, "Of all random numbers")
      ->capture_default_str();
  command->add_flag("--keep", options->keep, "Do not remove the pool");
  command->add_option("--json", options->json, "Write the results to this file")->type_name("FILE");
  command->callback([options, &action] {
    action = [options] {
      Cleanup::install();
      return run_command(*options);
    };
  });
}

}  // namespace flugs::tools
