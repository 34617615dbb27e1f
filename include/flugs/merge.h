#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

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
  /// A column *begins anew* when what its dictionary and its long texts take in the pool is at
  /// least so many bytes, and at least so many percent of it, 1 to 100, would not be needed if each
  /// row in the delta had its value itself: values that no row has any more, and entries of
  /// dictionaries of rows that are in main, where groups have their own. From then on new rows hold
  /// its values directly; the merge moves all rows that have not, whatever their chunk, and writes
  /// groups with long texts of the column again; then the space is given back. Not without room in
  /// the pool for both, nor when rows could get too large. The greatest number: never.
  std::uint64_t waste_bytes = std::uint64_t{16} << 20;
  std::uint32_t waste_percent = 50;
  /// Threads that merge, the calling one included, at most 1024; 0: one per processor. A thread
  /// that the system refuses is done without.
  std::uint32_t threads = 0;
  /// How long to wait, each time, for transactions that began earlier: before the first chunk is
  /// merged, for one that has locked a row of a chunk, and at the end, milliseconds.
  std::chrono::milliseconds patience{1000};
  /// When `patience` is over, transactions that are still in the way are asked to end, and waited
  /// for once more as long: the next call of such a one, or the scan or query that it is in, fails
  /// with kCancelled. One that makes no call does not end: then kBusy, as without.
  bool ends_old_transactions = false;
  /// Called now and then, one call at a time, from any thread; false ends the merge early: what has
  /// been merged stays so. Must not throw, and must not use the database.
  std::function<bool(const MergeProgress&)> progress = {};
};

/// What a merge did. Times are of the clock, in microseconds.
struct MergeReport {
  std::uint32_t chunks_merged = 0;  ///< of rows, into row groups
  std::uint32_t groups_merged = 0;  ///< again, without rows that had died
  /// Without a row since an earlier merge: their row ids are used again.
  std::uint32_t chunks_emptied = 0;
  std::uint32_t chunks_busy = 0;      ///< left as they were: a transaction held rows in them
  std::uint64_t rows = 0;             ///< in the groups that were made
  std::uint64_t codes = 0;            ///< rows times columns
  std::uint64_t rows_dropped = 0;     ///< dead, unused or never committed
  std::uint64_t bytes_before = 0;     ///< in the pool, of what was merged
  std::uint64_t bytes_after = 0;      ///< in the pool, of what it was merged into
  std::uint32_t columns_renewed = 0;  ///< that begin anew, see MergeOptions::waste_bytes
  /// In the pool, of dictionaries and texts that columns had before they began anew, or got another
  /// type; not in bytes_before. 0 while a row or a transaction still needs them: a later merge.
  std::uint64_t bytes_given_back = 0;
  std::uint64_t index_rows = 0;                 ///< of groups whose key indexes were written
  std::uint64_t index_bytes = 0;                ///< in the pool, of key indexes that were written
  std::uint32_t transactions_asked_to_end = 0;  ///< by MergeOptions::ends_old_transactions
  double wait_us = 0;                           ///< for transactions that had begun earlier
  double merge_us = 0;
  double index_us = 0;         ///< writing key indexes
  double build_cpu_us = 0;     ///< of all threads together
  double longest_move_us = 0;  ///< the longest that writers of one chunk had to wait
  bool cancelled = false;
  /// Old chunks still wait for readers that began before the switch; they are given back by the
  /// next merge, or as soon as these have ended when the table is merged by itself.
  bool releases_later = false;
};

/// When a table is merged without being asked to. Held in DRAM: set it again after opening.
/// Why these rules: docs/decisions/0013.
struct MergePolicy {
  /// Whether the table is merged by the database's own thread. Everything else here but the two
  /// last has a meaning only then.
  bool automatic = false;
  /// Merge when those full chunks of the delta that are quiet have so many bytes together; or when
  /// a row group is worth it, as `dead_percent` has it.
  std::uint64_t delta_bytes = std::uint64_t{64} << 20;
  /// As MergeOptions::dead_percent.
  std::uint32_t dead_percent = 25;
  /// As in MergeOptions. Also merge when a column may begin anew: it is looked at when a table is
  /// merged, and when it has grown by a quarter since.
  std::uint64_t waste_bytes = std::uint64_t{16} << 20;
  std::uint32_t waste_percent = 50;
  /// A full chunk is quiet when at most so many percent of its rows, 0 to 100, were created or
  /// deleted since the table was last looked at. 100: every full chunk is. One row in sixteen is
  /// looked at.
  std::uint32_t written_percent = 1;
  /// How often the table is looked at, and at most how often it is merged, 10 ms to a day.
  std::chrono::milliseconds interval{1000};
  /// Merge only when at least so many percent of the machine's processor time, 0 to 100, were
  /// idle since the table was last looked at; 0: however busy it is.
  std::uint32_t idle_percent = 0;
  /// Threads that merge, as MergeOptions::threads.
  std::uint32_t threads = 1;
  /// As MergeOptions::patience.
  std::chrono::milliseconds patience{1000};
  /// As MergeOptions::ends_old_transactions. Without it a table is not merged while a transaction
  /// is open that was open when the table was looked at before.
  bool ends_old_transactions = false;

  /// A delta with so many bytes gets no further chunk: writes that need one fail with kBusy until a
  /// merge, whoever runs it, has made it smaller; from there on idle processors, quiet chunks and
  /// `interval` do not matter to the merge. 0: no bound.
  std::uint64_t delta_bytes_max = 0;
  /// How long such a write waits first for a merge that is moving chunks already. (One that has not
  /// come so far waits for the writer's transaction: then the write fails at once.)
  std::chrono::milliseconds write_patience{0};
};

/// What keeps a table from being merged now.
enum class MergeState : std::uint8_t {
  kOff,             ///< MergePolicy::automatic is false
  kNotLookedAt,     ///< the policy is new
  kMerging,         ///< nothing does
  kNothingToMerge,  ///< no full chunk, and no row group with enough dead rows
  kDeltaSmall,      ///< less than MergePolicy::delta_bytes
  kWritten,         ///< full chunks are being written to
  kProcessorsBusy,  ///< more than MergePolicy::idle_percent allows
  kOldTransaction,  ///< one has been open since the table was looked at before
  kFailed,          ///< the last attempt; the next is later the more often it failed
};
std::string_view to_string(MergeState state) noexcept;

/// How a table stands with its merges, on call or by policy. Counters are since the database was
/// opened.
struct MergeStatus {
  MergeState state = MergeState::kOff;
  std::string reason;            ///< the same for people, with figures
  std::uint64_t delta_rows = 0;  ///< row positions in the delta, dead and unused ones included
  std::uint64_t delta_bytes = 0;
  std::uint64_t main_rows = 0;  ///< dead ones included
  std::uint64_t main_bytes = 0;
  std::uint64_t merges = 0;    ///< that changed something
  std::uint64_t failures = 0;  ///< of attempts
  double seconds = 0;          ///< at work, the merge that runs included; waiting left out
  std::string last_failure;
  std::uint64_t writes_refused = 0;  ///< by MergePolicy::delta_bytes_max
  MergeReport last;                  ///< of the last merge that changed something
};

}  // namespace flugs
