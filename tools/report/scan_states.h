#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/scan/scan_changes.h"
#include "bench/support/json.h"
#include "bench/support/query_run.h"
#include "tools/report/duckdb_job.h"

namespace flugs::tools {

/// What `flugs bench scan` does to the table after all queries have been run.
struct ScanStateOptions {
  double updated = 1;  ///< per cent of the rows
  double deleted = 1;
  bool together = false;             ///< rows one after the other, in place of all over the table
  std::vector<std::string> columns;  ///< that updates change; empty: drawn for each row
  std::uint32_t updater = 0;         ///< rows a second, beside the queries; 0: without
  double wait_seconds = 0;           ///< for merges by the table's policy; 0: not

  bool changes_rows() const noexcept { return updated > 0 || deleted > 0; }
  bench::ScanChangesOptions changes() const;
};
void add_scan_state_options(CLI::App& command, ScanStateOptions& options);

/// A state of the table, and the queries' times in it.
struct ScanState {
  ScanState() = default;
  explicit ScanState(std::string state, std::uint64_t changed = 0)
      : name(std::move(state)), rows(changed) {}

  std::string name;              ///< "clean", "after updates", ...
  std::uint64_t rows = 0;        ///< changed on the way to this state
  std::uint64_t delta_rows = 0;  ///< row positions, when the queries have been run
  std::uint64_t main_rows = 0;
  std::uint64_t merges = 0;  ///< so far, by call or by policy
  double merge_seconds = 0;
  std::vector<bench::QueryFigures> queries;
};

struct ScanStateFigures {
  std::vector<ScanState> states;         ///< after the clean one
  std::vector<std::string> differences;  ///< from what they should be, in words

  /// Compares with DuckDB's answer, by the names of states.
  void compare(const DuckdbAnswer& answer);
};

/// An object for each state, the clean one first. `ratio` is a query's time through its time in the
/// clean state, `cpu_ratio` the same of processor time.
bench::Json scan_states_json(const ScanState& clean, const ScanStateFigures& figures,
                             const DuckdbAnswer& duckdb);
/// Prints the times of all states, and DuckDB's if it has some.
void print_scan_states(const ScanState& clean, const ScanStateFigures& figures,
                       const DuckdbAnswer& duckdb);

}  // namespace flugs::tools
