#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/htap/frontier.h"
#include "bench/htap/htap_run.h"
#include "bench/support/json.h"
#include "tools/report/run_counters.h"

namespace flugs::tools {

/// One run of users and streams: what is left of it when its pool is gone.
struct HtapPoint {
  bench::RatePoint rate;
  std::uint32_t order = 0;  ///< of all runs, from 1 on
  double normalised_queries = 0;
  std::array<std::uint64_t, 3> transaction_ns{};  ///< p50, p99, p99.9
  std::uint64_t query_p99_ns = 0;
  std::optional<double> query_mean_ms;         ///< HtapQueries::mean_ms
  std::vector<std::uint64_t> query_median_ns;  ///< in the order of ch_queries; 0: never executed
  bool has_ages = false;
  std::array<std::uint64_t, 4> age_ns{};  ///< p50, p95, p99, max
  double not_fresh_share = 0;
  double growth = 1;
  double lines_per_write = 0;
  double fences_per_write = 0;
  std::uint64_t pool_bytes = 0;
  bench::Json json;  ///< all of it
  std::vector<std::string> problems;

  HtapPoint() = default;
  HtapPoint(std::uint32_t order, const bench::HtapRunOptions& options,
            const bench::HtapRunResult& run, const RunCounters& counters);
  /// Problems that others found.
  void add_problems(const std::vector<std::string>& more);
};

/// All of them, and what follows.
struct HtapReport {
  std::vector<HtapPoint> points;  ///< by users, then by streams
  std::uint32_t query_threads = 1;
  bool checks_conditions = true;  ///< of TPC-C, after each run
  std::uint32_t processors = 1;

  bool all_held() const;
  /// Whether a run has more threads than there are processors.
  bool is_oversubscribed(const bench::RatePoint& rate) const noexcept {
    return rate.users + rate.streams * query_threads > processors;
  }
  /// Null: there is none.
  const HtapPoint* find(std::uint32_t users, std::uint32_t streams) const;
  std::optional<bench::Frontier> frontier(bool is_normalised) const;

  /// "points", "ratios", "frontier", "frontier_normalised", "problems".
  bench::Json json() const;
  /// Tables; problems go to standard error.
  void print() const;
};

}  // namespace flugs::tools
