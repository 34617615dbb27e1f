#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "bench/tpcc/ch_queries.h"
#include "bench/tpcc/tpcc_population.h"
#include "bench/tpcc/tpcc_request.h"

namespace flugs::tools {

/// --mix full|new-order|payment.
void add_tpcc_mix_option(CLI::App& command, bench::TpccMix& mix);
std::string to_string(bench::TpccMix mix);

/// --warehouses, --customers and --items of commands that run CH-benCHmark.
void add_ch_population_options(CLI::App& command, bench::TpccOptions& population);
/// All dates of a population and of what happens to it afterwards.
bench::ChPeriod ch_period(const bench::TpccOptions& population);

/// Bytes that a population takes at most in a pool, roughly, with the history of CH-benCHmark.
std::uint64_t tpcc_pool_bytes(const bench::TpccOptions& population);

}  // namespace flugs::tools
