#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/support/query_run.h"
#include "flugs/database.h"
#include "tools/report/duckdb_job.h"
#include "tools/support/delta_layout.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

/// Options of the commands that time queries.
struct QueryOptions {
  std::string pool;
  IndexPlace index_place = kDefaultIndexPlace;  ///< of a pool that is made
  TableLayout layout = TableLayout::kRows;      ///< of the tables
  bench::QueryRunOptions run{default_load_threads(), 5};
  bool explain = false;
  bool keep = false;
  std::string duckdb;  ///< the program; empty: without
  std::string json;
};
void add_query_options(CLI::App& command, QueryOptions& options);

/// Results of queries, and the results that others say they should have.
struct QueryReport {
  std::vector<bench::QueryFigures> queries;
  DuckdbAnswer duckdb;                   ///< without queries if it was not asked
  std::vector<std::string> differences;  ///< of each query, in words; empty if not compared

  bool has_duckdb() const noexcept { return !duckdb.queries.empty(); }
  /// Every run of a query gave the same rows, and the right ones where that was compared.
  bool all_held() const;
  /// Adds DuckDB's answer, and where it differs.
  void compare(DuckdbAnswer answer);
};

/// The job but for its tables and queries.
DuckdbJob duckdb_job(const QueryOptions& options);

/// "commit", "medium", "flush", "guarantee", "index", "threads", "runs": how every result begins.
bench::Json query_header(const QueryOptions& options, const Statistics& statistics);
/// An object for each query.
bench::Json queries_json(const QueryReport& report);

/// A column of the table for people.
struct ReportColumn {
  std::string title;
  std::function<std::string(const bench::QueryFigures&)> cell;
};
/// Prints times, the columns, and DuckDB's times if there are some; with --explain, the plans.
void print_queries(const QueryOptions& options, const QueryReport& report,
                   const std::vector<ReportColumn>& columns);
/// To standard error: queries that did not give what they should.
void print_query_problems(const QueryReport& report);

}  // namespace flugs::tools
