#include "tools/report/scan_updates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

bench::Json times_json(const std::vector<bench::QueryFigures>& queries) {
  bench::Json json = bench::Json::array();
  for (const bench::QueryFigures& query : queries)
    json.push_back({{"name", query.name},
                    {"first_ms", query.first_ms},
                    {"ms", query.median_ms()},
                    {"main_entries_read", query.result->statistics().main_entries_read}});
  return json;
}

std::string ms(double value) { return fmt::format("{:.2f}", value); }

}  // namespace

std::uint64_t ScanUpdateOptions::every() const noexcept {
  return is_asked() ? static_cast<std::uint64_t>(std::llround(100 / percent)) : 0;
}

void add_scan_update_options(CLI::App& command, ScanUpdateOptions& options) {
  command
      .add_option("--updated", options.percent,
                  "Then update this percentage of the rows and run the queries again, merge with "
                  "default options, and run the queries once more")
      ->check(CLI::Range(0.0, 100.0));
  command
      .add_option("--updater", options.updater,
                  "With --updated: also run the queries beside a thread that updates this many "
                  "rows a second")
      ->check(CLI::Range(1u, 1'000'000u));
}

bench::Json scan_updates_json(const ScanUpdateOptions& options, const ScanUpdateFigures& figures) {
  return {{"percent", options.percent},
          {"rows", figures.rows},
          {"updater_rows_per_second", options.updater},
          {"updater_rows", figures.rows_beside},
          {"merge_seconds", figures.merge_seconds},
          {"updated", times_json(figures.updated)},
          {"beside", times_json(figures.beside)},
          {"merged", times_json(figures.merged)}};
}

void print_scan_updates(const ScanUpdateOptions& options,
                        const std::vector<bench::QueryFigures>& clean,
                        const ScanUpdateFigures& figures, const DuckdbAnswer& duckdb) {
  const bool has_duckdb = !duckdb.updated.empty();
  std::vector<std::string> header = {"query, ms", "first clean", "next", "first after", "next"};
  if (!figures.beside.empty()) header.emplace_back("beside updater");
  header.emplace_back("merged");
  if (has_duckdb)
    header.insert(header.end(), {"DuckDB clean", "first after", "next", "checkpoint"});
  TextTable table(std::move(header));
  for (std::size_t i = 0; i < clean.size(); ++i) {
    std::vector<std::string> cells = {std::string(clean[i].name), ms(clean[i].first_ms),
                                      ms(clean[i].median_ms()), ms(figures.updated[i].first_ms),
                                      ms(figures.updated[i].median_ms())};
    if (!figures.beside.empty()) cells.push_back(ms(figures.beside[i].median_ms()));
    cells.push_back(ms(figures.merged[i].median_ms()));
    if (has_duckdb) {
      cells.push_back(ms(duckdb.queries[i].median_ms()));
      cells.push_back(ms(duckdb.updated[i].first_ms));
      cells.push_back(ms(duckdb.updated[i].median_ms()));
      cells.push_back(ms(duckdb.merged[i].median_ms()));
    }
    table.add(std::move(cells));
  }
  fmt::print("\n{} rows updated, {:g} % of all", figures.rows, options.percent);
  if (!figures.beside.empty())
    fmt::print("; {} more beside the queries, {} a second", figures.rows_beside, options.updater);
  fmt::print("; then merged in {:.2f} s\n{}\n", figures.merge_seconds, table.to_string());
}

}  // namespace flugs::tools
