#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "bench/support/invariant_report.h"
#include "bench/tatp/tatp_population.h"
#include "bench/tatp/witness.h"
#include "flugs/database.h"

namespace flugs::bench {

struct InvariantOptions {
  unsigned threads = 1;
  /// T5 without a witness: what CALL_FORWARDING must hold.
  std::optional<std::uint64_t> forwarding_rows;
  /// T5, T6 and T7: what users were promised since the witness's base.
  Witness* witness = nullptr;
  /// Prepares the state found as the witness's next base; publishing it is the caller's.
  bool store_next_base = false;
  /// Told the subscribers looked at and their number, from the calling thread.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
};

/// Compares a database, on which nothing else runs, with its population and with the promises
/// made. Fails when a look-up fails in a way that is no answer.
Result<InvariantReport> check_tatp(Database& database, const TatpTables& tables,
                                   const Population& population, const InvariantOptions& options);

}  // namespace flugs::bench
