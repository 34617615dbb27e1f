#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "bench/tatp/tatp_driver.h"

namespace flugs::bench {

/// One of the databases that are compared.
struct TatpSide {
  Database* database;
  const TatpTables* tables;
};

struct TatpTurnsOptions {
  /// For each side: users, mix, seed, and seconds of sampling and before it, in its own turns only.
  /// No merges are watched, no witness is told.
  TatpRunOptions run;
  std::uint32_t turn_ms = 100;
};

/// Runs TATP on several databases, one at a time, in turns that are too short for the machine to
/// change its speed between them. Each round has the opposite order of the one before. So the
/// remaining difference is that of the databases. The users of a side keep their threads, and wait
/// while others have their turn; work that a database's own threads have left at the end of its
/// turn falls into another's. `seconds` of the results are of a side's turns. Statistics are those
/// of its sampling period.
std::vector<TatpRunResult> run_tatp_by_turns(std::span<const TatpSide> sides,
                                             const Population& population,
                                             const TatpTurnsOptions& options);

}  // namespace flugs::bench
