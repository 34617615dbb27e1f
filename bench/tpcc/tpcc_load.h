#pragma once

#include <cstdint>
#include <functional>

#include "bench/tpcc/tpcc_population.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Loads the population into empty tables, one thread. `progress(done, total)` is told the orders
/// loaded now and then. Fails as Transaction::insert_rows and commit.
Result<TpccLoad> load_tpcc(Database& database, const TpccTables& tables, const TpccOptions& options,
                           const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace flugs::bench
