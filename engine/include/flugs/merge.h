#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

namespace flugs {

/// What a merge moves to the read-optimised main store. See Database::merge.
enum class MergeScope : std::uint8_t {
  kFullChunks,  ///< chunks that take no new rows any more
  kEverything,  ///< also the one that is being filled: rows to come begin another
};

struct MergeProgress {
  std::uint32_t chunks_done = 0;
  std::uint32_t chunks_total = 0;
};

struct MergeOptions {
  MergeScope scope = MergeScope::kFullChunks;
  /// A row group of main is merged again when at least so many percent of its rows can be left out,
  /// 1 to 100; a group without any other row always is. Rows that died can be left out when they
  /// have left the key indexes, which happens with later transactions or at opening.
  std::uint32_t dead_percent = 25;
  /// Threads that merge, at most 1024; 0: one per processor.
  std::uint32_t threads = 0;
  /// How long to wait, each time, for transactions that began earlier: before the first chunk is
  /// merged, for one that has locked a row of a chunk, and at the end, milliseconds.
  std::chrono::milliseconds patience{1000};
  /// Called now and then, one call at a time, from any thread; false ends the merge early: what has
  /// been merged stays so. Must not throw, and must not use the database.
  std::function<bool(const MergeProgress&)> progress;
};

/// What a merge did. Times are of the clock, in microseconds.
struct MergeReport {
  std::uint32_t chunks_merged = 0;   ///< of rows, into row groups
  std::uint32_t groups_merged = 0;   ///< again, without rows that had died
  std::uint32_t chunks_emptied = 0;  ///< in which no row was left: their row ids are used again
  std::uint32_t chunks_busy = 0;     ///< left as they were: a transaction held rows in them
  std::uint64_t rows = 0;            ///< in the groups that were made
  std::uint64_t codes = 0;           ///< rows times columns
  std::uint64_t rows_dropped = 0;    ///< dead, unused or never committed
  std::uint64_t bytes_before = 0;    ///< in the pool, of what was merged
  std::uint64_t bytes_after = 0;     ///< in the pool, of what it was merged into
  double wait_us = 0;                ///< for transactions that had begun earlier
  double merge_us = 0;
  double build_cpu_us = 0;     ///< of all threads together
  double longest_move_us = 0;  ///< the longest that writers of one chunk had to wait
  bool cancelled = false;
  /// Old chunks still wait for readers that began before the switch; they are given back later.
  bool releases_later = false;
};

}  // namespace flugs
