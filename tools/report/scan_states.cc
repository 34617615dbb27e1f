#include "tools/report/scan_states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

using bench::QueryFigures;

double through(double time, double clean) { return time / std::max(clean, 1e-6); }

double ratio(const QueryFigures& query, const QueryFigures& clean) {
  return through(query.median_ms(), clean.median_ms());
}
double cpu_ratio(const QueryFigures& query, const QueryFigures& clean) {
  return through(query.median_cpu_ms(), clean.median_cpu_ms());
}

/// The geometric mean of a ratio over all queries.
double mean(const ScanState& state, const ScanState& clean,
            double (*of)(const QueryFigures&, const QueryFigures&)) {
  if (state.queries.empty()) return 1;
  double sum = 0;
  for (std::size_t i = 0; i < state.queries.size(); ++i)
    sum += std::log(of(state.queries[i], clean.queries[i]));
  return std::exp(sum / static_cast<double>(state.queries.size()));
}

/// What DuckDB needed in a state; null: it was not asked.
const std::vector<DuckdbAnswer::Query>* theirs(const DuckdbAnswer& duckdb,
                                               const std::string& state) {
  const auto found = std::ranges::find(duckdb.states, state, &DuckdbAnswer::State::name);
  return found == duckdb.states.end() ? nullptr : &found->queries;
}

bench::Json state_json(const ScanState& state, const ScanState& clean,
                       const std::vector<DuckdbAnswer::Query>* duckdb) {
  bench::Json queries = bench::Json::array();
  for (std::size_t i = 0; i < state.queries.size(); ++i) {
    const QueryFigures& query = state.queries[i];
    bench::Json json = {{"name", query.name},
                        {"first_ms", query.first_ms},
                        {"ms", query.median_ms()},
                        {"cpu_ms", query.median_cpu_ms()},
                        {"ratio", ratio(query, clean.queries[i])},
                        {"cpu_ratio", cpu_ratio(query, clean.queries[i])},
                        {"main_entries_read", query.result->statistics().main_entries_read}};
    if (duckdb != nullptr) {
      json["duckdb_first_ms"] = (*duckdb)[i].first_ms;
      json["duckdb_ms"] = (*duckdb)[i].median_ms();
      json["duckdb_cpu_ms"] = (*duckdb)[i].median_cpu_ms();
    }
    queries.push_back(std::move(json));
  }
  return {{"state", state.name},
          {"rows_changed", state.rows},
          {"delta_rows", state.delta_rows},
          {"main_rows", state.main_rows},
          {"merges", state.merges},
          {"merge_seconds", state.merge_seconds},
          {"ratio_mean", mean(state, clean, ratio)},
          {"cpu_ratio_mean", mean(state, clean, cpu_ratio)},
          {"queries", std::move(queries)}};
}

std::string ms(double value) { return fmt::format("{:.2f}", value); }

void print_state(const ScanState& state, const ScanState& clean,
                 const std::vector<DuckdbAnswer::Query>* duckdb) {
  fmt::print("{}:", state.name);
  if (state.rows != 0) fmt::print(" {} rows changed,", state.rows);
  if (state.merge_seconds != 0) fmt::print(" merged in {:.2f} s,", state.merge_seconds);
  fmt::print(" {} row positions in main, {} in the delta, {} merges so far\n", state.main_rows,
             state.delta_rows, state.merges);
  std::vector<std::string> header = {"query, ms",   "first", "next",  "CPU",
                                     "clean, next", "CPU",   "ratio", "of CPU"};
  if (duckdb != nullptr) header.insert(header.end(), {"DuckDB, first", "next"});
  TextTable table(std::move(header));
  for (std::size_t i = 0; i < state.queries.size(); ++i) {
    const QueryFigures& query = state.queries[i];
    const QueryFigures& before = clean.queries[i];
    std::vector<std::string> cells = {std::string(query.name),  ms(query.first_ms),
                                      ms(query.median_ms()),    ms(query.median_cpu_ms()),
                                      ms(before.median_ms()),   ms(before.median_cpu_ms()),
                                      ms(ratio(query, before)), ms(cpu_ratio(query, before))};
    if (duckdb != nullptr)
      cells.insert(cells.end(), {ms((*duckdb)[i].first_ms), ms((*duckdb)[i].median_ms())});
    table.add(std::move(cells));
  }
  fmt::print("{}geometric mean of the ratios: {:.2f}, of CPU {:.2f}\n\n", table.to_string(),
             mean(state, clean, ratio), mean(state, clean, cpu_ratio));
}

}  // namespace

bench::ScanChangesOptions ScanStateOptions::changes() const {
  bench::ScanChangesOptions changes{{updated, together}, {deleted, together}, 0};
  for (std::uint32_t c = 0; c < bench::kScanColumns; ++c)
    if (std::ranges::find(columns, bench::kScanColumnNames[c]) != columns.end())
      changes.columns |= 1u << c;
  return changes;
}

void add_scan_state_options(CLI::App& command, ScanStateOptions& options) {
  command
      .add_option("--updated", options.updated,
                  "After all queries update this percentage of the rows and run them again")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command
      .add_option("--deleted", options.deleted,
                  "Then delete this percentage of the rows and run them again; after both, merge "
                  "with default options, and run them once more")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  command.add_flag("--together", options.together,
                   "Update and delete rows that stand one after the other, not all over the table");
  command
      .add_option("--update-column", options.columns,
                  "Column that updates change, several times: several; without: drawn for each row")
      ->check(CLI::IsMember(
          std::vector<std::string>(bench::kScanColumnNames.begin(), bench::kScanColumnNames.end())))
      ->type_name("NAME");
  command
      .add_option("--updater", options.updater,
                  "Before the merge also run the queries beside a thread that updates this many "
                  "rows a second")
      ->check(CLI::Range(1u, 1'000'000u));
  command
      .add_option(
          "--wait-for-policy", options.wait_seconds,
          "Before the merge wait this many seconds for merges by the table's policy, and run "
          "the queries")
      ->check(CLI::Range(0.0, 3600.0));
}

void ScanStateFigures::compare(const DuckdbAnswer& answer) {
  for (const ScanState& state : states) {
    const std::vector<DuckdbAnswer::Query>* queries = theirs(answer, state.name);
    for (std::size_t i = 0; queries != nullptr && i < state.queries.size(); ++i)
      if (const std::string differs =
              difference(*state.queries[i].result, (*queries)[i].rows, "DuckDB");
          !differs.empty())
        differences.push_back(
            fmt::format("{}: {}: {}", state.name, state.queries[i].name, differs));
  }
}

bench::Json scan_states_json(const ScanState& clean, const ScanStateFigures& figures,
                             const DuckdbAnswer& duckdb) {
  bench::Json json = bench::Json::array();
  json.push_back(state_json(clean, clean, duckdb.queries.empty() ? nullptr : &duckdb.queries));
  for (const ScanState& state : figures.states)
    json.push_back(state_json(state, clean, theirs(duckdb, state.name)));
  return json;
}

void print_scan_states(const ScanState& clean, const ScanStateFigures& figures,
                       const DuckdbAnswer& duckdb) {
  fmt::print("\n");
  for (const ScanState& state : figures.states)
    print_state(state, clean, theirs(duckdb, state.name));
}

}  // namespace flugs::tools
