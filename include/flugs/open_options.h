#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>

#include "flugs/events.h"
#include "flugs/index_place.h"
#include "flugs/merge.h"
#include "flugs/progress.h"
#include "flugs/tuning.h"

namespace flugs {

enum class OpenMode : std::uint8_t {
  kOpen,    ///< the pool must exist
  kCreate,  ///< the pool must not exist
  kOpenOrCreate,
  kReadOnly,  ///< the pool must exist, and no process may have it open for writing. The file stays
              ///< as it is: what recovery writes stays in this process. Many processes may read a
              ///< pool at once. A file or a file system that must not be written to is enough
};

/// When Database::open returns. Reads, writes and commits are right from then on in both cases.
enum class Ready : std::uint8_t {
  kFirstAnswer,  ///< as soon as the database can answer queries. A thread then makes the indexes
                 ///< in DRAM; with IndexPlace::kPool these are the indexes of ordered keys. No call
                 ///< waits for them: until an ordered index is made, `rows` looks at each row of
                 ///< the table outside of main. With kDram, until the index of a unique key is
                 ///< made, looking a key up or storing a new key value searches the cells of these
                 ///< rows, some milliseconds for a million. The thread makes first what is asked
                 ///< for first (docs/decisions/0020). It also finds the rows that died before this
                 ///< opening, and frees them
  kIndexesBuilt,  ///< when no work is left to do
};

struct OpenOptions {
  /// A regular file, created with mode 0600; no symbolic link is followed. No zero byte.
  std::string path = {};
  OpenMode mode = OpenMode::kOpenOrCreate;
  /// A new database in memory of this process, which ends with it. Needs no path, and takes memory
  /// as it is written. For tests and caches: nothing survives.
  bool in_memory = false;
  /// Largest size that the pool can grow to, bytes, 8 MB to 16 TB; 0: 64 GB for a new pool, and as
  /// it is for one that exists. The file has this length and is sparse: the pool takes space as it
  /// needs it. A pool that exists with less gets this size while it is opened, as by
  /// Database::grow; one that has more is refused, because pools never get smaller.
  std::uint64_t max_bytes = 0;
  /// Step in which the pool grows, bytes, a multiple of 4096; fixed at creation. Chunks of tables
  /// that this opener creates have about a 16th of it, 4 MB at most. Make it smaller for a pool of
  /// less than 1 GB.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// Where all tables keep their indexes. Fixed at creation: an existing pool keeps its mode, and
  /// Statistics::index_place tells it.
  IndexPlace index_place = kDefaultIndexPlace;
  Ready ready = Ready::kFirstAnswer;
  /// Persistent memory whose devices count the times that they lost their power without a proper
  /// shutdown: whether a pool is opened all the same that was in use at such a time. Then changes
  /// that commits had promised may be lost in part, and what opening finds may be damaged. Run
  /// `flugs pool check` before. Without it opening fails with kCorrupt; docs/losing-data.md.
  bool accept_lost_lines = false;
  /// Medium `file`: what the journal has not written yet lies in a file on /dev/shm, 8 MB or less,
  /// and outlives the process, though not the system (docs/losing-data.md). A commit with
  /// Durability::kSoon survives the death of the process then; Durability::kProcessCrash needs it.
  /// Opening fails with kIoError or kOutOfSpace if there can be no file. The file goes when the
  /// database is closed, or opened again after a crash.
  bool crash_ring = false;
  /// Transactions that can be open at one time, including read-only ones, 1 to 4000. May differ
  /// from one opening to the next.
  std::uint32_t slots_max = 128;
  /// The policy of each table for merges without a call, until set_merge_policy gives it another.
  MergePolicy merge_policy = {};
  /// Background threads, clock, emulated SCM: few programs set these.
  Tuning tuning = {};
  /// As CallOptions::progress, while opening.
  std::function<void(const Progress&)> progress = {};
  /// As CallOptions::stop. The pool stays as it was, and can be opened again at once. Opening ends
  /// between two of its tasks. The longest task sorts the entries of an ordered key. Making a new
  /// pool is not stopped once it has begun.
  std::stop_token stop = {};
  /// Called for what happens in the background: merges by policy, growth of the pool, readers that
  /// merges wait for, and failures. One call at a time, in a thread that exists only for it. It may
  /// call the database, but must not close it, and must not throw. If it takes long, events are
  /// lost (from 1024 waiting ones on). Closing waits for the events so far.
  std::function<void(const Event&)> on_event = {};
};

}  // namespace flugs
