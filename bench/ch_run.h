#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/ch_queries.h"
#include "flugs/database.h"

namespace flugs::bench {

struct ChRunOptions {
  std::uint32_t threads = 1;
  std::uint32_t runs = 5;  ///< of each query, after one that is not counted
  ChPeriod period;
  /// Told the queries run and their number.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// What became of one query.
struct ChQueryFigures {
  std::string_view name;
  std::string_view question;
  std::vector<double> ms;  ///< of each run: the whole result in memory
  std::uint64_t checksum = 0;
  bool is_repeatable = true;                 ///< every run gave the same rows in the same order
  std::optional<query::QueryResult> result;  ///< of the last run

  double median_ms() const;
};

/// Runs the queries one after the other, each several times, every time on a snapshot of its own.
/// Fails as Query::run does.
Result<std::vector<ChQueryFigures>> run_ch(Database& database, const ChRunOptions& options);

/// Geometric mean of the medians, without Q22, which finds nothing as long as every customer has an
/// order, as it has when loaded.
double geometric_mean_ms(const std::vector<ChQueryFigures>& figures);

/// Compares what queries say about each other, on one snapshot of a database that holds TPC-C with
/// all its dates within the period: sums of money along all three ways that it took, numbers of
/// lines and orders. Gives what does not fit, in words. Fails as Query::run does.
Result<std::vector<std::string>> check_ch(Database& database, const ChRunOptions& options);

}  // namespace flugs::bench
