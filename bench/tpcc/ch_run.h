#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/support/query_run.h"
#include "bench/tpcc/ch_queries.h"
#include "flugs/database.h"

namespace flugs::bench {

struct ChRunOptions {
  QueryRunOptions query;
  ChPeriod period;
  /// Told the queries run and their number.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// Runs the queries one after the other, each several times, every time on a snapshot of its own.
/// Fails as Query::run does.
Result<std::vector<QueryFigures>> run_ch(Database& database, const ChRunOptions& options);

/// Geometric mean of the medians, without Q22, which finds nothing as long as every customer has an
/// order, as it has when loaded.
double geometric_mean_ms(const std::vector<QueryFigures>& figures);

/// What queries say about each other, on one snapshot of a database that holds TPC-C with all its
/// dates within the period: sums of money along all three ways that it took, numbers of lines and
/// orders.
class ChEquations {
 public:
  explicit ChEquations(const ChPeriod& period);

  std::size_t size() const noexcept { return all_.size(); }
  /// Equation `number`, below size(). Gives what does not fit, in words; empty: it holds.
  /// Fails as Query::run does.
  Result<std::string> check(std::size_t number, const Transaction& snapshot,
                            const query::RunOptions& options) const;

 private:
  /// Sums that must be equal.
  struct Equation {
    const char* words;
    std::vector<query::Query> sides;
  };
  std::vector<Equation> all_;
};

/// Checks all equations on one snapshot. Gives what does not fit, in words. Fails as Query::run
/// does.
Result<std::vector<std::string>> check_ch(Database& database, const ChRunOptions& options);

}  // namespace flugs::bench
