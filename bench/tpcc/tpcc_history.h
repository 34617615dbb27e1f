#pragma once

#include <cstdint>
#include <functional>

#include "bench/tpcc/tpcc_population.h"
#include "flugs/database.h"

namespace flugs::bench {

/// The transactions on a population before it is queried. On a freshly loaded population most of
/// CH-benCHmark's queries return zeros: every delivered line has the amount 0 and the quantity 5.
struct TpccHistoryOptions {
  /// Rounds in each warehouse: ten New-Orders, ten Payments and a Delivery, TPC-C's shares. 0:
  /// none. With `enough_rounds` a third of all orders are entered or delivered by transactions.
  std::uint32_t rounds = 0;
  std::uint64_t seed = 1;
};

/// 600 for the population of the specification.
constexpr std::uint32_t enough_rounds(const TpccOptions& population) noexcept {
  return population.customers_per_district / 5;
}

struct TpccHistory {
  std::uint64_t orders_entered = 0;
  std::uint64_t orders_rolled_back = 0;  ///< the one percent with an unused item
  std::uint64_t payments = 0;
  std::uint64_t orders_delivered = 0;
  std::int64_t last_us = 0;  ///< of its clock: nothing in the database is later
  double seconds = 0;
};

/// Executes the history on a population made with `population`, nothing else running: New-Orders,
/// Payments and Deliveries (TpccClient), inputs drawn as TPC-C has them, in one thread. Time passes
/// by a millisecond a transaction, from the last order loaded on. `progress(done, total)` is told
/// the transactions now and then.
/// Fails as the calls of Transaction do.
Result<TpccHistory> run_tpcc_history(
    Database& database, const TpccTables& tables, const TpccOptions& population,
    const TpccHistoryOptions& options,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace flugs::bench
