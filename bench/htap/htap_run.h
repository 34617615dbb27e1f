#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/htap/freshness.h"
#include "bench/htap/htap_stream.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_schema.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Users of TPC-C and analytic streams at the same time, a thread each.
struct HtapRunOptions {
  TpccRunOptions transactions;  ///< 0 users: streams alone
  Isolation isolation = Isolation::kSnapshot;
  std::uint32_t streams = 1;  ///< 0: users alone
  std::uint32_t query_threads = 1;
  ChPeriod period;
};

struct HtapRunResult {
  TpccRunResult transactions;  ///< `loop` is that of all; `steps_by_second` has transactions only
  HtapQueries queries;
  std::vector<double> queries_by_second;  ///< equations included
  Freshness freshness;                    ///< of queries and equations
  /// Rows of ORDER_LINE, as the mean of both ends of the sampling period, divided by the rows when
  /// the run began.
  double growth = 1;

  double queries_per_second() const noexcept;
  /// As if ORDER_LINE, which most of the queries read, had not grown.
  double normalised_queries_per_second() const noexcept { return queries_per_second() * growth; }
  std::vector<std::string> problems() const;
};

/// Runs on a population with the table `freshness`, whose key is `freshness`. Fails with the first
/// failure of a transaction that must not fail, or of a query.
Result<HtapRunResult> run_htap(Database& database, const TpccTables& tables, KeyId freshness,
                               const HtapRunOptions& options);

}  // namespace flugs::bench
