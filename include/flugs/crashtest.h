#pragma once

#include <cstdint>

#include "flugs/database.h"

// Runs a workload of your own under the crash-state explorer: `flugs prove crashtest ./libmine.so`.
//
// Write a class, and a function that makes one:
//
//   extern "C" flugs::CrashWorkload* flugs_crash_workload(std::uint64_t seed) {
//     return new Mine(seed);
//   }
//
// The explorer runs the steps on a database in memory. At every fence, and after every step, it
// makes each state in which a power cut could have left the medium, recovers it, and calls `check`
// on the recovered database. A complete workload is in examples/crash_workload.cc.

namespace flugs {

/// Where in the workload the power was cut.
struct CrashMoment {
  std::uint64_t acknowledged = 0;  ///< steps that have returned: all that they committed must be
                                   ///< there
  bool is_in_step = false;         ///< the next step had begun: its effect may be there as a whole,
                                   ///< or not at all
};

/// Thread-safety: everything is called from one thread, `check` also in the middle of a `step`. The
/// same seed must give the same steps, because the explorer replays failures.
class CrashWorkload {
 public:
  CrashWorkload() = default;
  CrashWorkload(const CrashWorkload&) = delete;
  CrashWorkload& operator=(const CrashWorkload&) = delete;
  virtual ~CrashWorkload() = default;

  /// How many steps there are.
  virtual std::uint64_t steps() const = 0;
  /// Makes the tables and the rows that the steps start from; not explored.
  virtual Status set_up(Database& database) = 0;
  /// Step `number`, from 0. No transaction is open when it returns.
  virtual Status step(Database& database, std::uint64_t number) = 0;
  /// Checks your invariant on a recovered database, and may write to it. The explorer itself checks
  /// that the audit is clean, that no space is lost, and that a second restart changes nothing.
  virtual Status check(Database& recovered, const CrashMoment& moment) = 0;
};

}  // namespace flugs
