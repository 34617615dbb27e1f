#pragma once

#include <cstdint>

#include "bench/support/json.h"
#include "flugs/database.h"

namespace flugs::tools {

/// What flugs counted within the sampling period of a run.
struct RunCounters {
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

  /// Flushes, writes of the journal, growth of the pool, merges. `executed`: transactions, those
  /// that only read, too.
  bench::Json json(std::uint64_t executed) const;
  void print(std::uint64_t executed) const;
};

}  // namespace flugs::tools
