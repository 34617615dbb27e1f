#pragma once

#include <chrono>
#include <cstdint>

namespace flugs {

/// The source of the commits' time-stamps. The pool does not record it; each opening may choose
/// another (docs/decisions/0024-commit-clock.md).
enum class CommitClock : std::uint8_t {
  kCounter,     ///< a word in DRAM that every commit writes and every begin reads
  kProcessors,  ///< the processors' time-stamp counters: threads share nothing, for machines with
                ///< many cores. Refused where the kernel does not use them as its own clock.
                ///< Transaction::snapshot and commit_timestamp are then not consecutive. Two
                ///< transactions that commit at the same moment and have written nothing in common
                ///< may get the same time-stamp
  kAutomatic,   ///< kProcessors where the process may run on kProcessorsForClock processors or more
                ///< and the counters are not refused; else kCounter
};
/// With this many processors or more, commits wait mainly for the one word that all of them write
/// (docs/scaling.md).
inline constexpr unsigned kProcessorsForClock = 32;

/// Which lines of emulated SCM a thread reads at the speed of its caches.
enum class ScmCache : std::uint8_t {
  kTask,       ///< lines that its transaction, query, or task of recovery or a merge has touched
  kProcessor,  ///< lines that it has touched, in a direct-mapped cache of 2^18 lines, 16 MB
};

/// Options of an opening that few programs need: OpenOptions::tuning. Each opening may set them
/// anew; the pool records none of them.
struct Tuning {
  /// The most free space that a background thread keeps allocated and touched ahead of the writers,
  /// bytes. The thread keeps a quarter of the used space, at least 4 MB, but never more than this.
  /// 0: no such thread.
  std::uint64_t grow_ahead_bytes = std::uint64_t{64} << 20;
  /// With IndexPlace::kPool: how often a thread makes the index entries of new dictionary values
  /// durable, milliseconds, up to a day. 0: no such thread; transactions that commit new values do
  /// it now and then.
  std::chrono::milliseconds hint_interval{10};
  /// Whether a thread does what Ready::kFirstAnswer leaves for later. Without it, calls do that
  /// work when they need it: the first one that writes to a table or looks a key up makes the
  /// indexes; rows that died are found before their space is used again, and before a merge.
  bool sweeps_in_background = true;
  /// How much of the pool a thread enters into the process's page tables right after opening,
  /// bytes: indexes first, then dictionaries, rows of the delta from the newest on, main, and long
  /// strings. 0: no such thread, and the first reader of a page waits for it. On medium `file` the
  /// page may come from the disk, so the limit there is at most a quarter of the memory that the
  /// process may use, as the machine or its control groups limit it.
  std::uint64_t warm_bytes_max = std::uint64_t{8} << 30;
  /// Size of the journal beside a pool on medium `file`, when a journal is made, bytes, up to 1 TB;
  /// 0: a sixteenth of the pool's size, from 4 MB to 64 MB. Commits wait for a checkpoint while it
  /// is full. On other media there is no journal.
  std::uint64_t journal_bytes = 0;
  /// Medium `file`: a checkpoint begins when a restart after a crash would have to replay the
  /// journal for longer than about this, up to a day. Shorter: checkpoints write more.
  std::chrono::microseconds restart_budget{20'000};
  /// Medium `file`: size, bytes, from which on a row group or an index of main is written to the
  /// pool's file at once, past the journal; 4096 or more; 0: none is. The merge waits for the
  /// disk then. Its pages are no memory of the process, so the kernel may take them
  /// back.
  std::uint64_t direct_write_bytes = std::uint64_t{64} << 10;
  /// Threads that rebuild indexes at opening; 0: one per processor.
  std::uint32_t recovery_threads = 0;
  /// How much the thread that merges by policy gives way to others, 0 to 19, as in nice(1): with 10
  /// it gets a tenth of the time of a busy thread, and all of an idle processor. The threads that
  /// it starts for a merge (MergePolicy::threads) do the same.
  std::uint32_t merge_niceness = 0;
  CommitClock clock = CommitClock::kAutomatic;
  /// Total latency of emulated SCM for reads and writes, nanoseconds; 0: the machine's own. The
  /// model assumes 90 for DRAM, so smaller values for reads change nothing. Only a build of flugs
  /// with FLUGS_SCM (preset "scm") charges reads; any other build refuses scm_read_ns. The model is
  /// docs/decisions/0028-scm-reads.md.
  std::uint32_t scm_read_ns = 0;
  std::uint32_t scm_write_ns = 0;
  ScmCache scm_cache = ScmCache::kTask;
  /// When a thread reads or flushes lines one after the other, each line but the first ones costs
  /// the latency divided by this number, since a processor fetches that many at a time. 1: each
  /// costs all of it.
  std::uint32_t scm_lines_in_flight = 8;
};
// The bounds that `open` checks hold for the defaults.
static_assert(Tuning().direct_write_bytes >= 4096);
static_assert(Tuning().merge_niceness <= 19 && Tuning().scm_lines_in_flight != 0);
static_assert(Tuning().restart_budget <= std::chrono::hours(24));

}  // namespace flugs
