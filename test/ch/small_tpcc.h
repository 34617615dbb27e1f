#pragma once

#include <string>

#include "bench/tpcc/ch_queries.h"
#include "bench/tpcc/tpcc_history.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_population.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// TPC-C with a thirtieth of the customers and a twentieth of the items, five warehouses (Q19 names
/// them all). Main thread only.
class SmallTpcc {
 public:
  explicit SmallTpcc(std::uint32_t rounds)
      : database([](OpenOptions& o) { o.segment_bytes = std::uint64_t{8} << 20; }) {
    options.warehouses = 5;
    options.customers_per_district = 100;
    options.items = 5000;
    options.seed = 8;
    tables = must(bench::create_tpcc_tables(*database, options.warehouses));
    load = must(bench::load_tpcc(*database, tables, options));
    period.since_us = options.first_entry_us - kDayUs;
    period.until_us = options.first_entry_us + 36'500 * kDayUs;
    if (rounds > 0)
      history = must(bench::run_tpcc_history(*database, tables, options, {rounds, 3}));
  }

  static constexpr std::int64_t kDayUs = 86'400'000'000;

  TemporaryDatabase database;
  bench::TpccOptions options;
  bench::TpccTables tables;
  bench::TpccLoad load;
  bench::TpccHistory history;
  bench::ChPeriod period;  ///< wide open
};

}  // namespace flugs::test
