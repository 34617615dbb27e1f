#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/support/scm_model.h"
#include "flugs/database.h"
#include "flugs/merge.h"
#include "tools/report/query_report.h"
#include "tools/report/scan_states.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

/// Options of `flugs bench scan`.
struct ScanOptions {
  QueryOptions query;
  ScanStateOptions states;
  std::uint64_t rows = 10'000'000;
  std::uint64_t distinct = 10'000'000;
  std::string side = "main";
  std::string encoding = "auto";
  std::vector<std::string> queries;  ///< by name; empty: all
  std::uint32_t load_threads = default_load_threads();
  std::uint64_t seed = 1;
  bench::ScmModel scm;

  std::uint64_t distinct_in_rows() const noexcept { return std::min(distinct, rows); }
  /// So many rows, the first ones, are merged before the others are loaded.
  std::uint64_t rows_merged() const noexcept {
    return side == "delta" ? 0 : side == "half" ? rows / 2 : rows;
  }
};

/// Results of `flugs bench scan`.
struct ScanFigures {
  std::string pool_path;
  double load_seconds = 0;
  std::optional<MergeReport> merge;
  QueryReport report;
  ScanState clean;  ///< its queries are copies of those of `report`
  ScanStateFigures states;
  Statistics statistics;
  TableStatistics table;
  std::uint64_t dram_bytes = 0;

  bool have_held() const noexcept { return report.all_held() && states.differences.empty(); }
  std::uint64_t dictionary_bytes() const {
    std::uint64_t bytes = 0;
    for (const ColumnStatistics& column : table.columns) bytes += column.dictionary_bytes;
    return bytes;
  }
};

bench::Json scan_json(const ScanOptions& options, const ScanFigures& figures);
/// Prints them as tables and lines of text; what should not be to the standard error.
void print_scan(const ScanOptions& options, const ScanFigures& figures);

}  // namespace flugs::tools
