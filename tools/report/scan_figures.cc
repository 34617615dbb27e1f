#include "tools/report/scan_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/loads/merge_load.h"
#include "bench/support/environment.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

bench::Json merge_json(const MergeReport& merge) {
  return {{"rows", merge.rows},
          {"seconds", merge.merge_us * 1e-6},
          {"codes_per_s_per_core", bench::codes_per_s_per_core(merge)},
          {"bytes_before", merge.bytes_before},
          {"bytes_after", merge.bytes_after},
          {"bytes_after_per_row",
           static_cast<double>(merge.bytes_after) / static_cast<double>(merge.rows)}};
}

std::vector<ReportColumn> scan_columns(const ScanOptions& options) {
  const double thread_ns_per_ms =
      1e6 * options.query.run.threads / static_cast<double>(options.rows);
  return {{"ns/row, thread",
           [thread_ns_per_ms](const bench::QueryFigures& query) {
             return fmt::format("{:.3f}", query.median_ms() * thread_ns_per_ms);
           }},
          {"scanned",
           [](const bench::QueryFigures& query) {
             return format_count(static_cast<double>(query.result->statistics().rows_scanned));
           }},
          {"skipped", [](const bench::QueryFigures& query) {
             return format_count(static_cast<double>(query.result->statistics().rows_skipped));
           }}};
}

}  // namespace

bench::Json scan_json(const ScanOptions& options, const ScanFigures& figures) {
  const auto rows = static_cast<double>(options.rows);
  bench::Json json = query_header(options.query, figures.statistics);
  json["rows"] = options.rows;
  json["distinct"] = options.distinct_in_rows();
  json["side"] = options.side;
  json["encoding"] = options.encoding;
  json["seed"] = options.seed;
  json["scm_latency_ns"] = scm_json(options.scm);
  json["queries"] = queries_json(figures.report);
  json["load_seconds"] = figures.load_seconds;
  json["load_rows_per_s"] = rows / std::max(figures.load_seconds, 1e-9);
  json["load_threads"] = options.load_threads;
  if (figures.merge.has_value()) json["merge"] = merge_json(*figures.merge);
  if (options.states.changes_rows()) {
    json["changes"] = {{"updated_percent", options.states.updated},
                       {"deleted_percent", options.states.deleted},
                       {"together", options.states.together},
                       {"update_columns", options.states.columns},
                       {"updater_rows_per_second", options.states.updater}};
    json["states"] = scan_states_json(figures.clean, figures.states, figures.report.duckdb);
  }
  if (figures.report.has_duckdb())
    json["duckdb"] = {
        {"version", figures.report.duckdb.version},
        {"load_seconds", figures.report.duckdb.load_seconds},
        {"file_bytes", figures.report.duckdb.file_bytes},
        {"file_bytes_per_row", static_cast<double>(figures.report.duckdb.file_bytes) / rows}};
  json["pool_bytes"] = figures.statistics.pool_allocated_bytes;
  json["pool_used_bytes"] = figures.statistics.pool_used_bytes;
  json["pool_bytes_per_row"] = static_cast<double>(figures.table.chunk_bytes) / rows;
  json["dictionary_bytes_per_row"] = static_cast<double>(figures.dictionary_bytes()) / rows;
  json["hint_index_bytes_per_row"] =
      static_cast<double>(figures.statistics.hint_index_bytes) / rows;
  json["groups"] = figures.table.groups;
  json["group_rows"] = figures.table.group_rows;
  json["dram_bytes"] = figures.dram_bytes;
  json["dram_index_bytes"] = figures.statistics.dram_index_bytes;
  json["machine"] = bench::to_json(bench::environment());
  return json;
}

void print_scan(const ScanOptions& options, const ScanFigures& figures) {
  const auto rows = static_cast<double>(options.rows);
  fmt::print("scan: {} rows, {} distinct integers in each of 4 columns, {}, {} thread{}\n",
             options.rows, options.distinct_in_rows(),
             options.side == "half" ? "half in main, half in delta" : "all in " + options.side,
             options.query.run.threads, options.query.run.threads == 1 ? "" : "s");
  fmt::print("pool: {}, medium {}: {}\n", figures.pool_path, figures.statistics.medium,
             figures.statistics.guarantee);
  fmt::print("loaded in {:.2f} s ({} rows/s, {} threads)", figures.load_seconds,
             format_count(rows / std::max(figures.load_seconds, 1e-9)), options.load_threads);
  if (figures.merge.has_value())
    fmt::print("; {} rows merged in {:.2f} s ({} codes/s and core)", figures.merge->rows,
               figures.merge->merge_us * 1e-6,
               format_count(bench::codes_per_s_per_core(*figures.merge)));
  fmt::print("\n");
  print_queries(options.query, figures.report, scan_columns(options));
  if (figures.report.has_duckdb())
    fmt::print("DuckDB {}: a file of {}, {:.1f} bytes a row; copied and loaded in {:.1f} s\n",
               figures.report.duckdb.version, format_bytes(figures.report.duckdb.file_bytes),
               static_cast<double>(figures.report.duckdb.file_bytes) / rows,
               figures.report.duckdb.load_seconds);
  fmt::print(
      "pool {} ({} used): {:.1f} bytes a row, and for the delta {:.1f} in dictionaries and "
      "{:.1f} in their indexes; ",
      format_bytes(figures.statistics.pool_allocated_bytes),
      format_bytes(figures.statistics.pool_used_bytes),
      static_cast<double>(figures.table.chunk_bytes) / rows,
      static_cast<double>(figures.dictionary_bytes()) / rows,
      static_cast<double>(figures.statistics.hint_index_bytes) / rows);
  fmt::print("DRAM {} ({} indexes)\n", format_bytes(figures.dram_bytes),
             format_bytes(figures.statistics.dram_index_bytes));
  if (options.states.changes_rows())
    print_scan_states(figures.clean, figures.states, figures.report.duckdb);
  fmt::print("results: {}\n", figures.have_held() ? "correct" : "WRONG");
  print_query_problems(figures.report);
  for (const std::string& difference : figures.states.differences)
    fmt::print(stderr, "flugs: {}\n", difference);
}

}  // namespace flugs::tools
