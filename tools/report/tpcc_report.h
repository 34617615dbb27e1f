#pragma once

#include "bench/support/json.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_findings.h"

namespace flugs::tools {

/// Rates, percentiles and conditions of one database's run.
bench::Json tpcc_run_json(const bench::TpccRunResult& run);
bench::Json tpcc_conditions_json(const bench::TpccReport& report);

/// A table of the types, and the rates.
void print_tpcc_run(const bench::TpccRunResult& run);
void print_tpcc_conditions(const bench::TpccReport& report);

}  // namespace flugs::tools
