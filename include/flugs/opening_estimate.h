#pragma once

#include <cstdint>

#include "flugs/database.h"
#include "flugs/status.h"

namespace flugs {

/// What Database::open would find to do in a pool, at most, and about how long that takes. Of rows
/// it counts positions, dead and unused ones too.
struct OpeningEstimate {
  IndexMode index_mode = kDefaultIndexMode;
  std::uint64_t pool_bytes = 0;  ///< taken from the medium
  std::uint64_t tables = 0;
  std::uint64_t chunks = 0;              ///< of rows, or row groups: a pointer to each
  std::uint64_t groups = 0;              ///< of these, row groups: a look at each one's header
  std::uint64_t hint_bytes = 0;          ///< of indexes in the pool, whose directories are checked
  std::uint64_t dictionary_entries = 0;  ///< to be proven and put into indexes
  /// The same, left for later, see Ready::kFirstAnswer; and entries of unique and of ordered keys.
  std::uint64_t dictionary_entries_left = 0;
  std::uint64_t key_entries_left = 0;
  std::uint64_t ordered_entries_left = 0;
  std::uint64_t rows_swept = 0;       ///< before open returns
  std::uint64_t rows_unswept = 0;     ///< left for later, see Ready::kFirstAnswer
  std::uint64_t hash_entries = 0;     ///< of unique keys, to be made
  std::uint64_t ordered_entries = 0;  ///< of ordered keys, to be made
  std::uint64_t threads = 0;          ///< that would do it
  /// Milliseconds until open returns, pages in memory, nothing else running: from the counts above
  /// and what each cost on the machine that docs/benchmarks.md names. Good for the order of
  /// magnitude, half to twice of it on idle machines of that kind; what a medium needs to find
  /// pages, and a process to start, is not in it.
  double open_ms = 0;
  /// The same of the indexes that are left for later: from the return of open on, until the last
  /// of them is made. Nobody waits for that, see Ready::kFirstAnswer.
  double index_later_ms = 0;
};

/// Looks at a pool that nobody has open for writing, without changing a byte of it; reads as much
/// of it as opening with hints does. Of `options` counts: path, ready, recovery_threads.
/// Thread-safety: any. Fails with: as Database::open, which would say the same.
/// Source: SOFORT (DaMoN 2014), section 5.3: restart is linear in what is rebuilt.
Result<OpeningEstimate> estimate_opening(const OpenOptions& options);

}  // namespace flugs
