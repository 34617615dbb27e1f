#pragma once

#include <cstdint>
#include <functional>

#include "bench/tpcc/tpcc_schema.h"

namespace flugs::bench {

/// What a population is made by; the same options give the same rows. With the defaults for
/// customers and items it is that of the specification (clause 4.3); fewer of them make a database
/// for tests, in which all proportions are kept.
struct TpccOptions {
  std::uint32_t warehouses = 1;
  std::uint32_t customers_per_district = 3000;  ///< and as many orders; at least 10
  std::uint32_t items = 100'000;                ///< and as many rows of STOCK in each warehouse
  std::uint64_t seed = 1;
  /// When the first order was entered, microseconds since 1970: 2026-01-01. The specification
  /// has all rows loaded "now"; here each order is a millisecond later than the one before.
  std::int64_t first_entry_us = 1'767'225'600'000'000;

  /// Orders of each district that are delivered when loaded: those with the lowest ids, 70 %.
  std::uint32_t delivered_per_district() const noexcept { return customers_per_district * 7 / 10; }
  std::uint64_t orders() const noexcept {
    return std::uint64_t{warehouses} * kDistrictsPerWarehouse * customers_per_district;
  }
};

inline constexpr std::int64_t kEntryStepUs = 1000;

struct TpccLoad {
  std::uint64_t rows = 0;
  std::uint64_t order_lines = 0;
  double seconds = 0;
};

/// Loads the population into empty tables, one thread. `progress(done, total)` is told the orders
/// loaded now and then. Fails as Transaction::insert_rows and commit.
Result<TpccLoad> load_tpcc(Database& database, const TpccTables& tables, const TpccOptions& options,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace flugs::bench
