#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "flugs/progress.h"

namespace flugs {

/// The chunks that a merge moves to the read-optimised main store. See Database::merge.
enum class MergeScope : std::uint8_t {
  kFullChunks,  ///< chunks that take no new rows any more
  kEverything,  ///< also the chunk that is being filled: later rows begin another
};

struct MergeOptions {
  MergeScope scope = MergeScope::kFullChunks;
  /// A row group of main is merged again when at least this percentage of its rows can be left out,
  /// 1 to 100; a group in which all rows can be left out always is. A dead row can be left out once
  /// it has left the key indexes. The merge takes it out of them before it begins, unless a
  /// snapshot still sees it, or the slot of the transaction that deleted it has another one now.
  /// Scans read dead rows for nothing, and test which rows are dead.
  std::uint32_t dead_percent = 10;
  /// Limits from which a column *begins anew*. Its dictionary and long texts take a number of bytes
  /// in the pool. Some of these bytes would be unnecessary if each row of the delta held its value
  /// itself: values that no row has any more, and dictionary entries of rows in main, where groups
  /// have dictionaries of their own. The column begins anew when the unnecessary bytes are at least
  /// `waste_bytes`, and at least `waste_percent` (1 to 100) of all. Then new rows hold its values
  /// directly. The merge moves all rows that do not yet, in every chunk, rewrites groups with long
  /// texts of the column, and gives the space back. A column does not begin anew if the pool has no
  /// room for a second copy of its texts, or if rows could get too large. In a pool of less than
  /// 1 GiB a 64th of its size counts instead, if that is less. The greatest number of bytes: never.
  std::uint64_t waste_bytes = std::uint64_t{16} << 20;
  std::uint32_t waste_percent = 50;
  /// Threads that merge, including the calling one, at most 1024; 0: one per processor. If the
  /// system refuses a thread, the merge goes on without it.
  std::uint32_t threads = 0;
  /// How long to wait for transactions that began earlier, milliseconds. Each of these waits has
  /// this limit: before the first chunk is merged, for a transaction that has locked a row of a
  /// chunk, and at the end.
  std::chrono::milliseconds patience{1000};
  /// When `patience` is over, transactions that are still in the way are asked to end, and the
  /// merge waits as long once more. The next call of each of them, or its running scan or query,
  /// fails with kCancelled. A transaction that makes no call does not end; then the merge fails
  /// with kBusy, as without this option.
  bool ends_old_transactions = false;
  /// As in CallOptions. A merge that is asked to stop ends after the chunks that are being merged,
  /// and fails with kCancelled. Merged chunks stay merged, and MergeStatus::last counts them.
  std::function<void(const Progress&)> progress = {};
  std::stop_token stop = {};
};

/// Results of a merge. Times are of the clock, in microseconds.
struct MergeReport {
  std::uint32_t chunks_merged = 0;  ///< chunks of rows that became row groups
  std::uint32_t groups_merged = 0;  ///< merged again, without dead rows
  /// Chunks without a row since an earlier merge: their row ids are used again.
  std::uint32_t chunks_emptied = 0;
  std::uint32_t chunks_busy = 0;  ///< left unmerged: a transaction held rows in them
  /// Left unmerged: the pool has no room for what they would become. They take no new rows until a
  /// later merge finds the room.
  std::uint32_t chunks_left = 0;
  std::uint32_t groups_moved = 0;       ///< in a nearly full pool, so that free space lies together
  std::uint64_t rows = 0;               ///< in the new groups
  std::uint64_t codes = 0;              ///< rows times columns
  std::uint64_t rows_dropped = 0;       ///< dead, unused or never committed
  std::uint64_t bytes_before = 0;       ///< in the pool, of the chunks and groups before
  std::uint64_t bytes_after = 0;        ///< in the pool, of the new groups
  std::uint32_t columns_rewritten = 0;  ///< columns that begin anew, see MergeOptions::waste_bytes
  /// Bytes in the pool of dictionaries and texts from before a column began anew or got another
  /// type; not in bytes_before. 0 while a row or a transaction still needs them: then a later merge
  /// gives them back.
  std::uint64_t bytes_given_back = 0;
  std::uint64_t index_rows = 0;                 ///< rows of groups whose key indexes were written
  std::uint64_t index_bytes = 0;                ///< in the pool, of the key indexes written
  std::uint32_t transactions_asked_to_end = 0;  ///< by MergeOptions::ends_old_transactions
  double wait_us = 0;                           ///< for transactions that had begun earlier
  double merge_us = 0;
  double index_us = 0;         ///< writing key indexes
  double build_cpu_us = 0;     ///< of all threads together
  double longest_move_us = 0;  ///< the longest wait of the writers of one chunk
  /// Old chunks still wait for readers that began before the switch. The next merge gives them
  /// back; if the table is merged by policy, this happens as soon as these readers have ended.
  bool releases_later = false;
};
static_assert(std::is_trivially_copyable_v<MergeReport>);

/// About what a merge of a table would give back with MergeScope::kEverything, dead_percent 1 and
/// the other options as they are by default (Database::estimate_merge). It also makes rows of the
/// delta smaller, which is not in these figures, and rewrites key indexes. Sizes are of the pool.
struct MergeEstimate {
  std::uint64_t rows_dead = 0;   ///< deleted or replaced; no open transaction sees them
  std::uint64_t dead_bytes = 0;  ///< of these rows, in delta and main
  /// Places for rows in the delta that have none. New rows of this table may take them, other
  /// tables may not.
  std::uint64_t unused_bytes = 0;
  /// Dictionaries and texts that no row needs, in columns that would begin anew
  /// (MergeOptions::waste_bytes) or have begun anew.
  std::uint64_t unneeded_bytes = 0;
  std::uint64_t rows_held = 0;  ///< deleted or replaced, but an open transaction may still see them
  std::uint64_t held_bytes = 0;  ///< of these rows; a merge keeps them until it has ended
  /// What earlier merges have replaced, and open transactions may still read. As TableStatistics.
  std::uint64_t replaced_bytes = 0;

  /// What a merge would give back now.
  std::uint64_t bytes() const noexcept { return dead_bytes + unused_bytes + unneeded_bytes; }
  /// What it could give back as well, if no transaction were open.
  std::uint64_t bytes_kept() const noexcept { return held_bytes + replaced_bytes; }
};
static_assert(std::is_trivially_copyable_v<MergeEstimate>);

/// When a table is merged without a call. By default a merge must give space back, or serve queries
/// that read the delta often; `delta_bytes` also merges tables before that. The policy is in DRAM:
/// set it again after opening. The reasons for these rules are in docs/decisions/0013, 0042 and
/// 0055.
struct MergePolicy {
  /// Whether the database's own thread merges the table. Only the two last options below apply
  /// without it.
  bool automatic = true;
  /// Merge when the quiet full chunks of the delta have at least this many bytes together: scans
  /// get faster, and reading single rows slower. The greatest number: never for that reason.
  std::uint64_t delta_bytes = ~std::uint64_t{0};
  /// Merge when queries have read as many rows of the delta as its full chunks have, times this,
  /// since the table was last merged, and the quiet ones have 8 MiB. Some hundred queries more save
  /// what the merge takes. 0: never for that reason.
  std::uint32_t delta_scans = 200;
  /// Merge when a row group is worth it. As MergeOptions::dead_percent, but by default 25: a merge
  /// that no call waits for must write little.
  std::uint32_t dead_percent = 25;
  /// As in MergeOptions. A table is also merged when a column may begin anew, and when free rows
  /// take at least a quarter of `waste_bytes`, and `waste_percent` of the full chunks of the delta;
  /// their other rows then move to main. A table keeps free rows for an eighth of its row ids.
  /// Columns are examined when a table is merged, and when it has grown by a quarter since.
  std::uint64_t waste_bytes = std::uint64_t{16} << 20;
  std::uint32_t waste_percent = 50;
  /// Space is *short* while less than this percentage of the pool's largest size is left, 0 to 100.
  /// Then a table is merged whatever `delta_bytes` says, also in chunks that are not quiet if most
  /// of their rows are free. When a write has found no space, every chunk is merged that holds
  /// something, at once. 0: only then.
  std::uint32_t short_percent = 12;
  /// A full chunk is quiet when at most this percentage of its rows, 0 to 100, were created or
  /// deleted since the table was last examined. With 100 every full chunk is quiet. One row in
  /// sixteen is examined.
  std::uint32_t written_percent = 1;
  /// How often the table is examined, and the shortest time between two merges, 10 ms to a day.
  std::chrono::milliseconds interval{1000};
  /// Merge only when at least this percentage of the machine's processor time, 0 to 100, was idle
  /// since the table was last examined; 0: however busy the machine is.
  std::uint32_t idle_percent = 0;
  /// Threads that merge, as MergeOptions::threads.
  std::uint32_t threads = 1;
  /// As MergeOptions::patience.
  std::chrono::milliseconds patience{1000};
  /// As MergeOptions::ends_old_transactions. Without it a table is not merged while a transaction
  /// is open that was already open when the table was examined before.
  bool ends_old_transactions = false;
  /// Texts that row groups hold compressed are made anew in memory when they are first read, and
  /// stay for the next readers. When those of the table take more bytes than this, the thread lets
  /// go of them, but for texts of keys; their memory is free when the transactions have ended that
  /// were open then. Without `automatic` they go with their row groups. Queries that only test
  /// texts heed the limit in any case.
  std::uint64_t read_text_bytes_max = std::uint64_t{64} << 20;

  /// A delta with this many bytes gets no further chunk: writes that need one fail with kBusy until
  /// any merge has made it smaller. From there on merges by policy ignore idle processors, quiet
  /// chunks and `interval`. 0: no bound.
  std::uint64_t delta_bytes_max = 0;
  /// How long a write at that bound first waits for a merge that is already moving chunks. (A merge
  /// that has not come so far waits for the writer's transaction, so then the write fails at once.)
  std::chrono::milliseconds write_patience{0};
};
static_assert(std::is_trivially_copyable_v<MergePolicy>);
static_assert(MergePolicy().dead_percent <= 100 && MergePolicy().waste_percent <= 100 &&
              MergePolicy().written_percent <= 100 && MergePolicy().idle_percent <= 100 &&
              MergePolicy().short_percent <= 100);

/// The reason why a table is not merged now.
enum class MergeState : std::uint8_t {
  kOff,             ///< MergePolicy::automatic is false
  kNotLookedAt,     ///< the policy is new; the table has not been examined yet
  kMerging,         ///< no reason: a merge is running
  kNothingToMerge,  ///< no full chunk, and no row group with enough dead rows
  kDeltaSmall,      ///< smaller than MergePolicy::delta_bytes, and no space to give back
  kWritten,         ///< full chunks are being written to
  kProcessorsBusy,  ///< more than MergePolicy::idle_percent allows
  kOldTransaction,  ///< a transaction has been open since the table was last examined
  kFailed,          ///< the last attempt failed; the more failures, the later the next attempt
};
std::string_view to_string(MergeState state) noexcept;

/// The state of a table's merges, by call or by policy. Counters count since the database was
/// opened.
struct MergeStatus {
  MergeState state = MergeState::kOff;
  std::string reason;            ///< the state for people, with figures
  std::uint64_t delta_rows = 0;  ///< row positions in the delta, dead and unused ones included
  std::uint64_t delta_bytes = 0;
  std::uint64_t main_rows = 0;  ///< dead rows included
  std::uint64_t main_bytes = 0;
  std::uint64_t merges = 0;    ///< merges that changed something
  std::uint64_t failures = 0;  ///< failed attempts
  double seconds = 0;          ///< spent merging, including a running merge but not its waits
  std::string last_failure;
  std::uint64_t writes_refused = 0;  ///< by MergePolicy::delta_bytes_max
  MergeReport last;                  ///< of the last merge that changed something
};

}  // namespace flugs
