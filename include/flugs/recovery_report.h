#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flugs {

/// What opening found and did. Durations are in microseconds of wall time, measured with a
/// monotonic clock; the phases add up to `total_us` but for the gaps between them.
///
/// Source: SOFORT (DaMoN 2014), section 3.3 and Table 1.
struct RecoveryReport {
  struct Phase {
    /// "map": the file is locked and mapped. "catalog": schemas and lists of chunks are read.
    /// "transactions": what those did that a crash interrupted is completed or undone, and space
    /// that nobody owns is free. "dictionary indexes", "key indexes": these are made, or with
    /// IndexMode::kHint completed, as far as opening waits for it; dead rows are found. "threads":
    /// those that merge, keep hints and do what was left are started.
    std::string name;
    double duration_us = 0;  ///< wall time
    /// In this order: 1, tables, transactions that a crash interrupted, entries that were looked
    /// at, live rows that were looked at, 1 to 3.
    std::uint64_t items = 0;
  };

  std::vector<Phase> phases;  ///< in the order in which they ran
  double total_us = 0;        ///< from the call of open to its return

  bool created = false;  ///< the pool was new: there was nothing to recover
  /// Committed, as their slots say; what was missing of their stamps was finished.
  std::uint64_t transactions_completed = 0;
  /// Begun to commit, not committed: left without effect.
  std::uint64_t transactions_undone = 0;
  /// Whole entries that were proven, NULL's included: all of them, with IndexMode::kHint those
  /// whose index entries were not known to be durable.
  std::uint64_t dictionary_entries = 0;
  std::uint64_t dictionary_entries_dropped = 0;  ///< torn leftovers of the crash, never to be used
  /// Of rows that opening did not leave for later: live ones of tables with keys; where key indexes
  /// are rebuilt, put into them.
  std::uint64_t rows_live = 0;
  std::uint64_t rows_recycled = 0;  ///< the others: dead, never committed or unused, ready for use
  std::uint64_t threads = 0;        ///< that rebuilt indexes

  /// Wall microseconds of the phase `name`, 0 when it did not run.
  double phase_us(const std::string& name) const noexcept {
    for (const Phase& phase : phases)
      if (phase.name == name) return phase.duration_us;
    return 0;
  }
};

}  // namespace flugs
