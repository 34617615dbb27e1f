#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "bench/tpcc/tpcc_client.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_load.h"
#include "bench/tpcc/tpcc_witness.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// Two warehouses with ten customers a district. Main thread only.
struct TinyTpcc {
  TinyTpcc() {
    options.warehouses = 2;
    options.customers_per_district = 10;
    options.items = 200;
    tables = must(bench::create_tpcc_tables(*database, options.warehouses));
    must(bench::load_tpcc(*database, tables, options));
  }

  /// Runs until `writes` transactions have written something, however long that takes.
  bench::TpccRunResult run(std::uint32_t users, std::uint64_t writes,
                           bench::TpccWitness* witness = nullptr) {
    constexpr double kSecondsMax = 100;
    const std::uint64_t before = database->statistics().transactions_committed;
    bench::TpccRunOptions run;
    run.population = options;
    run.users = users;
    run.loop.seconds = kSecondsMax;
    run.witness = witness;
    run.loop.progress = [this, before, writes](double, double) {
      return database->statistics().transactions_committed < before + writes;
    };
    return must(bench::run_tpcc(
        [this](std::uint32_t) -> Result<std::unique_ptr<bench::TpccSession>> {
          Result<std::unique_ptr<bench::TpccClient>> client =
              bench::TpccClient::make(*database, tables);
          if (!client.ok()) return std::move(client).status();
          return std::unique_ptr<bench::TpccSession>(*std::move(client));
        },
        run));
  }

  TemporaryDatabase database;
  bench::TpccOptions options;
  bench::TpccTables tables;
};

}  // namespace flugs::test
