#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/support/query_run.h"
#include "tools/report/duckdb_job.h"

namespace flugs::tools {

/// The updates of `flugs bench scan` after all queries have been run once.
struct ScanUpdateOptions {
  double percent = 0;         ///< of the rows are updated; 0: none
  std::uint32_t updater = 0;  ///< rows a second, beside the queries; 0: without

  bool is_asked() const noexcept { return percent > 0; }
  /// One row in this many is updated.
  std::uint64_t every() const noexcept;
};
void add_scan_update_options(CLI::App& command, ScanUpdateOptions& options);

/// The queries' times after updates.
struct ScanUpdateFigures {
  std::uint64_t rows = 0;  ///< updated
  std::uint64_t rows_beside = 0;
  double merge_seconds = 0;
  std::vector<bench::QueryFigures> updated;
  std::vector<bench::QueryFigures> beside;  ///< an updater; empty without
  std::vector<bench::QueryFigures> merged;  ///< with default options
  std::vector<std::string> differences;     ///< from what they should be, in words
};

bench::Json scan_updates_json(const ScanUpdateOptions& options, const ScanUpdateFigures& figures);
/// Prints the times beside the `clean` ones, and DuckDB's if it has some.
void print_scan_updates(const ScanUpdateOptions& options,
                        const std::vector<bench::QueryFigures>& clean,
                        const ScanUpdateFigures& figures, const DuckdbAnswer& duckdb);

}  // namespace flugs::tools
