#pragma once

#include <cstdint>
#include <functional>

#include "bench/tatp/tatp_population.h"
#include "bench/tatp/tatp_schema.h"
#include "flugs/database.h"

namespace flugs::bench {

struct LoadResult {
  std::uint64_t rows = 0;
  std::uint64_t forwarding_rows = 0;
  double seconds = 0;
};

/// Loads the population into empty tables, subscribers in random order, 1000 in a transaction.
/// `progress(done, total)` is told now and then, from the calling thread.
/// Fails as Transaction::insert and commit.
Result<LoadResult> load_population(
    Database& database, const TatpTables& tables, const Population& population, unsigned threads,
    const std::function<void(std::uint64_t, std::uint64_t)>& progress = {});

}  // namespace flugs::bench
