#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace flugs {

/// What opening found and did. Durations are in microseconds of wall time, measured with a
/// monotonic clock; the phases and the gaps between them add up to `total_us`.
///
/// Source: SOFORT (DaMoN 2014), section 3.3 and Table 1.
struct RecoveryReport {
  struct Phase {
    /// "map": the file is locked and mapped. "catalog": schemas and lists of chunks are read.
    /// "transactions": interrupted transactions are completed or undone, and space without an owner
    /// is freed. "dictionary indexes", "key indexes": these indexes are made, or with
    /// IndexPlace::kPool completed, as far as opening waits for it; dead rows are found. "threads":
    /// the threads start that merge, keep hints, and do the work left for later.
    std::string name;
    double duration_us = 0;  ///< wall time
    /// In the order of the phases: 1; tables; transactions that a crash interrupted; entries
    /// examined; live rows examined; 1 to 3.
    std::uint64_t items = 0;
  };

  std::vector<Phase> phases;  ///< in the order in which they ran
  double total_us = 0;        ///< from the call of open to its return

  bool created = false;  ///< the pool was new: there was nothing to recover
  /// Committed according to their slots; missing stamps were completed.
  std::uint64_t transactions_completed = 0;
  /// Had begun to commit, but were not committed: left without effect.
  std::uint64_t transactions_undone = 0;
  /// Whole entries that were verified, including NULL's. All entries; with IndexPlace::kPool only
  /// those whose index entries were not known to be durable.
  std::uint64_t dictionary_entries = 0;
  std::uint64_t dictionary_entries_dropped = 0;  ///< torn by the crash; never used
  /// Live rows of tables with keys, without the rows that opening left for later. Where key indexes
  /// are rebuilt, these rows were entered into them.
  std::uint64_t rows_live = 0;
  std::uint64_t rows_recycled = 0;  ///< the other rows: dead, never committed or unused; ready for
                                    ///< use
  std::uint64_t threads = 0;        ///< threads that rebuilt indexes

  /// Wall microseconds of the phase `name`, 0 when it did not run.
  double phase_us(const std::string& name) const noexcept {
    for (const Phase& phase : phases)
      if (phase.name == name) return phase.duration_us;
    return 0;
  }
};

}  // namespace flugs
