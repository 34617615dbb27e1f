#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_findings.h"
#include "flugs/database.h"

namespace flugs::tools {

/// What flugs counted within the sampling period.
struct TpccCounters {
  Statistics before;
  Statistics after;

  std::uint64_t writes() const noexcept {
    return after.transactions_committed - before.transactions_committed;
  }
  /// A counter's growth for each committed write transaction; 0 without.
  double per_write(std::uint64_t Statistics::* counter) const noexcept {
    if (writes() == 0) return 0;
    return static_cast<double>(after.*counter - before.*counter) / static_cast<double>(writes());
  }
};

/// Rates, percentiles and conditions of one database's run.
bench::Json tpcc_run_json(const bench::TpccRunResult& run);
bench::Json tpcc_conditions_json(const bench::TpccReport& report);
bench::Json tpcc_counters_json(const bench::TpccRunResult& run, const TpccCounters& counters);

/// A table of the types, and the rates.
void print_tpcc_run(const bench::TpccRunResult& run);
void print_tpcc_counters(const bench::TpccRunResult& run, const TpccCounters& counters);
void print_tpcc_conditions(const bench::TpccReport& report);

/// Nanoseconds of processor, user and system, for each executed transaction.
double tpcc_processor_ns(const bench::TpccRunResult& run);

}  // namespace flugs::tools
