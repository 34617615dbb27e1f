#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/environment.h"
#include "bench/tpcc/ch_run.h"
#include "bench/tpcc/ch_tables.h"
#include "bench/tpcc/tpcc_history.h"
#include "bench/tpcc/tpcc_load.h"
#include "tools/report/query_report.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/text_table.h"
#include "tools/support/tpcc_options.h"

namespace flugs::tools {

namespace {

struct ChOptions {
  QueryOptions query;
  bench::TpccOptions population;
  bool history = true;

  bench::ChRunOptions run() const {
    bench::ChRunOptions run;
    run.query = query.run;
    run.period = ch_period(population);
    return run;
  }
};

/// Everything a run gave.
struct ChFigures {
  std::string pool_path;
  bench::TpccLoad load;
  bench::TpccHistory history;
  QueryReport report;
  std::vector<std::string> problems;  ///< sums that should be equal and are not
  Statistics statistics;
  std::uint64_t dram_bytes = 0;

  double mean_ms() const { return bench::geometric_mean_ms(report.queries); }
  /// DuckDB's geometric mean over the same queries as ours.
  double duckdb_mean_ms() const {
    std::vector<bench::QueryFigures> theirs;
    for (std::size_t i = 0; i < report.queries.size(); ++i) {
      theirs.emplace_back().name = report.queries[i].name;
      theirs.back().ms = report.duckdb.queries[i].ms;
    }
    return bench::geometric_mean_ms(theirs);
  }
  bool all_held() const { return problems.empty() && report.all_held(); }
};

bench::Json figures_json(const ChOptions& options, const ChFigures& figures) {
  bench::Json json = query_header(options.query, figures.statistics);
  json["warehouses"] = options.population.warehouses;
  json["customers_per_district"] = options.population.customers_per_district;
  json["items"] = options.population.items;
  json["seed"] = options.population.seed;
  json["queries"] = queries_json(figures.report);
  json["geometric_mean_ms"] = figures.mean_ms();
  if (figures.report.has_duckdb()) {
    json["duckdb_geometric_mean_ms"] = figures.duckdb_mean_ms();
    json["duckdb_version"] = figures.report.duckdb.version;
    json["duckdb_load_seconds"] = figures.report.duckdb.load_seconds;
  }
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
  json["machine"] = bench::to_json(bench::environment());
  return json;
}

std::vector<ReportColumn> ch_columns() {
  return {{"rows",
           [](const bench::QueryFigures& query) {
             return fmt::format("{}", query.result->row_count());
           }},
          {"scanned",
           [](const bench::QueryFigures& query) {
             return format_count(static_cast<double>(query.result->statistics().rows_scanned));
           }},
          {"memory", [](const bench::QueryFigures& query) {
             return format_bytes(query.result->statistics().memory_bytes_peak);
           }}};
}

void print_figures(const ChOptions& options, const ChFigures& figures) {
  const bench::TpccHistory& history = figures.history;
  fmt::print(
      "CH-benCHmark, 11 of its 22 queries, {} warehouse{}, {} thread{}, nothing else running\n",
      options.population.warehouses, options.population.warehouses == 1 ? "" : "s",
      options.query.run.threads, options.query.run.threads == 1 ? "" : "s");
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, figures.statistics.medium,
             figures.statistics.guarantee);
  fmt::print("loaded {} rows in {:.2f} s ({} order lines)\n", figures.load.rows,
             figures.load.seconds, figures.load.order_lines);
  if (options.history)
    fmt::print("history: {} orders entered, {} delivered, {} payments in {:.2f} s\n",
               history.orders_entered, history.orders_delivered, history.payments, history.seconds);
  print_queries(options.query, figures.report, ch_columns());
  fmt::print("geometric mean without Q22 {:.2f} ms", figures.mean_ms());
  if (figures.report.has_duckdb())
    fmt::print(", DuckDB {} {:.2f} ms", figures.report.duckdb.version, figures.duckdb_mean_ms());
  fmt::print("\npool {} ({} used), DRAM {} ({} indexes)\n",
             format_bytes(figures.statistics.pool_allocated_bytes),
             format_bytes(figures.statistics.pool_used_bytes), format_bytes(figures.dram_bytes),
             format_bytes(figures.statistics.dram_index_bytes));
  fmt::print("sums that must be equal: {}\n", figures.problems.empty() ? "they are" : "NOT EQUAL");
  for (const std::string& problem : figures.problems) fmt::print(stderr, "flugs: {}\n", problem);
  print_query_problems(figures.report);
}

DuckdbJob ch_job(const ChOptions& options) {
  const bench::ChPeriod period = options.run().period;
  DuckdbJob job = duckdb_job(options.query);
  job.parameters = {{"since", period.since_us}, {"until", period.until_us}};
  job.tables = {
      {"customer", {"c_w_id", "c_d_id", "c_id", "c_last", "c_state", "c_phone", "c_balance"}},
      {"new_order", {"no_w_id", "no_d_id", "no_o_id"}},
      {"orders", {"o_w_id", "o_d_id", "o_id", "o_c_id", "o_entry_d", "o_carrier_id", "o_ol_cnt"}},
      {"order_line",
       {"ol_w_id", "ol_d_id", "ol_o_id", "ol_number", "ol_i_id", "ol_delivery_d", "ol_quantity",
        "ol_amount"}},
      {"item", {"i_id", "i_price", "i_data"}}};
  for (const bench::ChQuery& query : bench::ch_queries())
    job.queries.push_back({std::string(query.name), std::string(query.sql)});
  return job;
}

class ChCommand {
 public:
  explicit ChCommand(const ChOptions& options) : options_(options) {}

  Status run(ChFigures& figures) {
    OpenOptions open;
    open.index_place = options_.query.index_place;
    Result<PoolOfCommand> pool = open_pool(options_.query.pool, options_.query.keep,
                                           tpcc_pool_bytes(options_.population), open);
    if (!pool.ok()) return std::move(pool).status();
    figures.pool_path = pool->file.path();
    Status status = fill(pool->database, figures);
    if (status.ok()) status = query(pool->database, figures);
    bar_.clear();
    figures.statistics = pool->database.statistics();
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
                    "the pool already holds TPC-C's tables, but a run needs a new population: name "
                    "a different pool, or none");
    if (!tables.ok()) return tables.status();
    if (Status s = lay_out_tables(database, options_.query.layout); !s.ok()) return s;
    // The eleven queries here need none of them. Queries in SQL on a kept pool need them.
    Status made = bench::make_ch_tables(database, population.seed);
    if (!made.ok()) return made;
    Result<bench::TpccLoad> load = bench::load_tpcc(
        database, *tables, population, [this](std::uint64_t done, std::uint64_t total) {
          bar_.update("loading", done, total, "orders");
        });
    if (!load.ok()) return std::move(load).status();
    figures.load = *load;
    if (!options_.history) return {};
    bench::TpccHistoryOptions rounds;
    rounds.rounds = bench::enough_rounds(population);
    rounds.seed = population.seed;
    Result<bench::TpccHistory> history = bench::run_tpcc_history(
        database, *tables, population, rounds, [this](std::uint64_t done, std::uint64_t total) {
          bar_.update("history", done, total, "transactions");
        });
    if (!history.ok()) return std::move(history).status();
    figures.history = *history;
    return {};
  }

  Status query(Database& database, ChFigures& figures) {
    bench::ChRunOptions run = options_.run();
    run.progress = [this](std::uint64_t done, std::uint64_t total) {
      bar_.update("queries", done, total);
    };
    Result<std::vector<bench::QueryFigures>> queries = bench::run_ch(database, run);
    if (!queries.ok()) return std::move(queries).status();
    figures.report.queries = std::move(*queries);
    Result<std::vector<std::string>> problems = bench::check_ch(database, run);
    if (!problems.ok()) return std::move(problems).status();
    figures.problems = std::move(*problems);
    return options_.query.duckdb.empty() ? Status() : compare(database, figures);
  }

  /// The same queries by DuckDB on a copy of what they read.
  Status compare(Database& database, ChFigures& figures) {
    bar_.update("DuckDB", 0, 0);
    const Result<Transaction> snapshot = database.begin(AccessMode::kReadOnly);
    if (!snapshot.ok()) return snapshot.status();
    Result<DuckdbAnswer> answer = ask_duckdb(database, *snapshot, ch_job(options_));
    if (!answer.ok()) return std::move(answer).status();
    figures.report.compare(std::move(*answer));
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
  return finish_with_json(options.query.json, figures_json(options, figures),
                          figures.all_held() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_ch(CLI::App& app, Action& action) {
  auto options = std::make_shared<ChOptions>();
  CLI::App* command =
      app.add_subcommand("ch", "Runs CH-benCHmark: analytic queries on the tables of TPC-C");
  add_query_options(*command, options->query);
  add_ch_population_options(*command, options->population);
  command->add_flag("!--no-history", options->history,
                    "Query the population as it was loaded; most results are zero then");
  command->add_option("--seed", options->population.seed, "Seed of all random numbers")
      ->capture_default_str();
  run_when_chosen(*command, action, [options] { return run_command(*options); });
}

}  // namespace flugs::tools
