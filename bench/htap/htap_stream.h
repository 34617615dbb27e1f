#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/htap/freshness.h"
#include "bench/support/closed_loop.h"
#include "bench/support/histogram.h"
#include "bench/tpcc/ch_queries.h"
#include "bench/tpcc/ch_run.h"
#include "flugs/database.h"
#include "flugs/query.h"

namespace flugs::bench {

struct HtapStreamOptions {
  ChPeriod period;
  std::uint32_t threads = 1;  ///< that work on one query
  std::uint64_t seed = 1;
  std::uint32_t users = 0;  ///< with a row in the table `freshness`
  KeyId freshness;          ///< its key, if there are users
  std::size_t sights = 0;   ///< queries for whose log there is room from the beginning
};

/// Results of the streams, for queries that began within the sampling period.
struct HtapQueries {
  struct OfQuery {
    std::string_view name;
    Histogram latency;
  };
  HtapQueries();

  std::vector<OfQuery> queries;  ///< in the order of ch_queries
  Histogram equations;
  std::vector<std::string> problems;  ///< equations that did not hold, sampled or not

  /// Queries of CH-benCHmark; equations are not among them.
  std::uint64_t executed() const noexcept;
  /// The latencies of all queries together, without equations.
  Histogram latency() const;
  /// Geometric mean of the medians, without Q22, as geometric_mean_ms has it. Nothing if one of the
  /// other queries was never executed.
  std::optional<double> mean_ms() const;
};

/// An analytic stream. A step is the next item of a cycle, on a snapshot of its own: one of the
/// queries of CH-benCHmark, or one of the equations between them, another one in each cycle. Where
/// it begins is drawn. Its latency is from before the snapshot to the whole result, the numbers of
/// the users included.
class alignas(64) HtapStream final : public ClosedLoopUser {
 public:
  HtapStream(Database& database, const HtapStreamOptions& options, std::uint32_t index);

  Status prepare() override;
  Status step(bool is_sampled) override;

  // After the thread has ended.
  void add_to(HtapQueries& result) const;
  const SightLog& sights() const noexcept { return sights_; }

 private:
  /// The item, and then the next one's turn.
  Status execute(const Transaction& snapshot);
  Status check_equation(const Transaction& snapshot);

  Database& database_;
  HtapStreamOptions options_;
  query::RunOptions run_;
  std::vector<query::Query> queries_;
  ChEquations equations_;
  std::size_t item_ = 0;      ///< of the cycle; behind the queries: the equation
  std::size_t equation_ = 0;  ///< whose turn is next
  FreshnessReader reader_;
  std::vector<std::uint64_t> numbers_;
  SightLog sights_;
  HtapQueries done_;
};

}  // namespace flugs::bench
