#include "tools/report/query_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "bench/support/environment.h"
#include "tools/support/command.h"
#include "tools/support/delta_layout.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

void add_query_options(CLI::App& command, QueryOptions& options) {
  add_used_pool_options(command, options.pool, options.keep);
  add_index_option(command, options.index_place);
  add_layout_option(command, options.layout);
  command.add_option("--threads", options.run.threads, "Threads that work on a query")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command.add_option("--runs", options.run.runs, "Runs of each query, after one to warm up")
      ->check(CLI::Range(1u, 1000u))
      ->capture_default_str();
  command.add_flag("--explain", options.explain, "Print how each query was executed");
  command
      .add_option("--duckdb", options.duckdb,
                  "Compare with DuckDB, rows and times, through this program: tools/duckdb")
      ->type_name("PROGRAM")
      ->check(CLI::ExistingFile);
  add_json_option(command, options.json);
}

bool QueryReport::all_held() const {
  return std::all_of(queries.begin(), queries.end(),
                     [](const auto& query) { return query.is_repeatable; }) &&
         std::all_of(differences.begin(), differences.end(),
                     [](const std::string& difference) { return difference.empty(); });
}

void QueryReport::compare(DuckdbAnswer answer) {
  duckdb = std::move(answer);
  differences.resize(queries.size());
  for (std::size_t i = 0; i < queries.size(); ++i)
    if (differences[i].empty())
      differences[i] = difference(*queries[i].result, duckdb.queries[i].rows, "DuckDB");
}

DuckdbJob duckdb_job(const QueryOptions& options) {
  DuckdbJob job;
  job.program = options.duckdb;
  job.threads = options.run.threads;
  job.runs = options.run.runs;
  return job;
}

bench::Json query_header(const QueryOptions& options, const Statistics& statistics) {
  return {{"commit", bench::environment().commit},
          {"medium", statistics.medium},
          {"flush", statistics.flush},
          {"dirty_shutdowns", statistics.dirty_shutdowns},
          {"guarantee", statistics.guarantee},
          {"index", to_string(statistics.index_place)},
          {"layout", to_string(options.layout)},
          {"threads", options.run.threads},
          {"runs", options.run.runs}};
}

bench::Json queries_json(const QueryReport& report) {
  bench::Json queries = bench::Json::array();
  for (std::size_t i = 0; i < report.queries.size(); ++i) {
    const bench::QueryFigures& query = report.queries[i];
    const query::QueryStatistics& statistics = query.result->statistics();
    const auto [fastest, slowest] = std::minmax_element(query.ms.begin(), query.ms.end());
    bench::Json json = {{"name", query.name},
                        {"flugs_ms", query.median_ms()},
                        {"min_ms", *fastest},
                        {"max_ms", *slowest},
                        {"cpu_ms", query.median_cpu_ms()},
                        {"rows", query.result->row_count()},
                        {"rows_scanned", statistics.rows_scanned},
                        {"rows_skipped", statistics.rows_skipped},
                        {"memory_bytes_peak", statistics.memory_bytes_peak},
                        {"repeatable", query.is_repeatable}};
    if (query.resident_bytes != 0) json["resident_bytes"] = query.resident_bytes;
    if (report.has_duckdb()) {
      json["duckdb_ms"] = report.duckdb.queries[i].median_ms();
      json["duckdb_cpu_ms"] = report.duckdb.queries[i].median_cpu_ms();
      json["duckdb_resident_bytes"] = report.duckdb.queries[i].resident_bytes;
    }
    if (!report.differences.empty()) json["equal"] = report.differences[i].empty();
    queries.push_back(std::move(json));
  }
  return queries;
}

void print_queries(const QueryOptions& options, const QueryReport& report,
                   const std::vector<ReportColumn>& columns) {
  std::vector<std::string> header = {fmt::format("query, ms of {} runs", options.run.runs),
                                     "median", "min", "max", "CPU"};
  std::size_t name_width = 0;
  for (const bench::QueryFigures& query : report.queries)
    name_width = std::max(name_width, query.name.size());
  for (const ReportColumn& column : columns) header.push_back(column.title);
  if (report.has_duckdb()) header.insert(header.end(), {"DuckDB", "its CPU"});
  std::vector<std::size_t> texts = {0};
  if (!report.differences.empty()) {
    texts.push_back(header.size());
    header.emplace_back("same rows");
  }
  TextTable table(std::move(header), std::move(texts));
  for (std::size_t i = 0; i < report.queries.size(); ++i) {
    const bench::QueryFigures& query = report.queries[i];
    const auto [fastest, slowest] = std::minmax_element(query.ms.begin(), query.ms.end());
    std::vector<std::string> cells = {
        fmt::format("{:<{}} {}", query.name, name_width, query.question),
        fmt::format("{:.2f}", query.median_ms()), fmt::format("{:.2f}", *fastest),
        fmt::format("{:.2f}", *slowest), fmt::format("{:.2f}", query.median_cpu_ms())};
    for (const ReportColumn& column : columns) cells.push_back(column.cell(query));
    if (report.has_duckdb()) {
      cells.push_back(fmt::format("{:.2f}", report.duckdb.queries[i].median_ms()));
      cells.push_back(fmt::format("{:.2f}", report.duckdb.queries[i].median_cpu_ms()));
    }
    if (!report.differences.empty())
      cells.emplace_back(report.differences[i].empty() ? "yes" : "NO");
    table.add(std::move(cells));
  }
  fmt::print("\n{}\n", table.to_string());
  if (!options.explain) return;
  for (const bench::QueryFigures& query : report.queries)
    fmt::print("{}: {}\n{}\n", query.name, query.question, query.result->explain());
}

void print_query_problems(const QueryReport& report) {
  for (std::size_t i = 0; i < report.queries.size(); ++i) {
    const bench::QueryFigures& query = report.queries[i];
    if (!query.is_repeatable)
      fmt::print(stderr, "flugs: {} gave different rows in different runs\n", query.name);
    if (i < report.differences.size() && !report.differences[i].empty())
      fmt::print(stderr, "flugs: {}: {}\n", query.name, report.differences[i]);
  }
}

}  // namespace flugs::tools
