#pragma once

#include "bench/support/json.h"
#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_findings.h"

namespace flugs::tools {

/// Rates and percentiles of one database's run.
bench::Json ycsb_run_json(const bench::YcsbRunResult& run);
bench::Json ycsb_invariants_json(const bench::YcsbReport& report);

/// A table of the types, and the rates.
void print_ycsb_run(const bench::YcsbRunResult& run);
void print_ycsb_invariants(const bench::YcsbReport& report);

}  // namespace flugs::tools
