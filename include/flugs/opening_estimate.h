#pragma once

#include <cstdint>
#include <type_traits>

#include "flugs/database.h"
#include "flugs/status.h"

namespace flugs {

/// The most work that Database::open would have with a pool, and roughly how long it would take.
/// Rows are counted as positions, including dead and unused ones.
struct OpeningEstimate {
  IndexPlace index_place = kDefaultIndexPlace;
  std::uint64_t pool_bytes = 0;  ///< taken from the medium
  std::uint64_t tables = 0;
  std::uint64_t chunks = 0;              ///< chunks of rows, or row groups: a pointer to each
  std::uint64_t groups = 0;              ///< chunks that are row groups: each one's header is read
  std::uint64_t hint_bytes = 0;          ///< of indexes in the pool, whose directories are checked
  std::uint64_t dictionary_entries = 0;  ///< entries to verify and enter into indexes
  /// Entries left for later, see Ready::kFirstAnswer: of dictionaries, of unique keys, of ordered
  /// keys.
  std::uint64_t dictionary_entries_left = 0;
  std::uint64_t key_entries_left = 0;
  std::uint64_t ordered_entries_left = 0;
  std::uint64_t rows_swept = 0;       ///< before open returns
  std::uint64_t rows_unswept = 0;     ///< left for later, see Ready::kFirstAnswer
  std::uint64_t hash_entries = 0;     ///< of unique keys, to be made before open returns
  std::uint64_t ordered_entries = 0;  ///< of ordered keys, to be made before open returns
  std::uint64_t threads = 0;          ///< threads that would do the work
  /// Milliseconds until open returns, if all pages are in memory and nothing else runs. It is
  /// computed from the counts above and their costs on the machine that docs/benchmarks.md names.
  /// It gives the order of magnitude: half to twice the true time on idle machines of that kind. It
  /// does not include the time that a medium needs to find pages, or that a process needs to start.
  double open_ms = 0;
  /// The same for the indexes that are left for later: from the return of open until the last of
  /// them is made. No call waits for that, see Ready::kFirstAnswer.
  double index_later_ms = 0;
};
static_assert(std::is_trivially_copyable_v<OpeningEstimate>);

/// Examines a pool that no process has open for writing, without changing a byte of it. Reads as
/// much of it as opening with hints does. Uses these members of `options`: path, ready,
/// recovery_threads.
/// Thread-safety: any thread. Fails with: as Database::open on the same pool.
/// Source: SOFORT (DaMoN 2014), section 5.3: restart is linear in what is rebuilt.
Result<OpeningEstimate> estimate_opening(const OpenOptions& options);

}  // namespace flugs
