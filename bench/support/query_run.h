#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/support/median.h"
#include "flugs/database.h"
#include "flugs/query.h"

namespace flugs::bench {

/// Figures of one query.
struct QueryFigures {
  std::string_view name;
  std::string_view question;
  double first_ms = 0;         ///< of the run that is not counted
  std::vector<double> ms;      ///< of each run: the whole result in memory
  std::vector<double> cpu_ms;  ///< of each run, on all processors together
  std::uint64_t resident_bytes =
      0;  ///< by which resident memory rose at most, in any run, if measured
  std::uint64_t checksum = 0;
  bool is_repeatable = true;                 ///< every run gave the same rows in the same order
  std::optional<query::QueryResult> result;  ///< of the last run

  double median_ms() const { return median(ms); }
  double median_cpu_ms() const { return median(cpu_ms); }
};

struct QueryRunOptions {
  std::uint32_t threads = 1;
  std::uint32_t runs = 5;  ///< after one that is not counted
  std::uint64_t memory_bytes_max = query::RunOptions().memory_bytes_max;
  std::string temporary_folder = {};  ///< RunOptions::temporary_folder
  bool measures_resident = false;     ///< reads files of the kernel before and after each run
};

/// Runs a query several times, each time on a snapshot of its own.
/// Fails as Query::run does; the message begins with the name.
Result<QueryFigures> run_query(Database& database, std::string_view name, std::string_view question,
                               const query::Query& query, const QueryRunOptions& options);

}  // namespace flugs::bench
