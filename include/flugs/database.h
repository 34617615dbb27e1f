#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/ids.h"
#include "flugs/merge.h"
#include "flugs/recovery_report.h"
#include "flugs/retry.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs {

namespace engine {
struct DatabaseAccess;
}  // namespace engine

/// How far something long has come, in steps of unlike length. `total` is 0 when it is not known,
/// and may grow; `done` does not get less within a phase.
struct Progress {
  std::string_view phase;  ///< "dictionary indexes" or "key indexes" of RecoveryReport, or "verify"
  std::uint64_t done = 0;
  std::uint64_t total = 0;
};

enum class OpenMode : std::uint8_t {
  kOpen,    ///< the pool must exist
  kCreate,  ///< the pool must not exist
  kOpenOrCreate,
};

/// Where the indexes are that lead from values to ValueIDs, and from unique keys to rows.
enum class IndexMode : std::uint8_t {
  kRebuild,  ///< in DRAM; made from the data after opening: look-ups are slower until it is done
  kHint,     ///< in the pool; opening finds them, at any size (docs/decisions/0015-hint-indexes.md)
};
inline constexpr IndexMode kDefaultIndexMode = IndexMode::kHint;

/// When opening returns. Reads, writes and commits are right from then on either way.
enum class Ready : std::uint8_t {
  kFirstAnswer,   ///< as soon as queries can be answered. In the background indexes in DRAM are
                  ///< made, with IndexMode::kHint those of ordered keys. Nobody waits for these:
                  ///< until they are made a range is found by looking at the table's rows outside
                  ///< of main, one by one. With kRebuild a unique key that is looked up, or gets a
                  ///< new value, is searched for in the cells of these rows, some milliseconds
                  ///< for a million, until its index is made; what is wanted first is made first
                  ///< (docs/decisions/0020). Rows of earlier lives that died are found and given
                  ///< free
  kIndexesBuilt,  ///< when nothing is left to do
};

/// Where the time-stamps of commits come from. Nothing in the pool tells which it was; it may be
/// another one at each opening (docs/decisions/0024-commit-clock.md).
enum class CommitClock : std::uint8_t {
  kCounter,     ///< a word in DRAM that every commit writes and every begin reads
  kProcessors,  ///< the processors' time-stamp counters: nothing is shared, for machines with many
                ///< cores. Refused where the kernel does not go by them itself. With it
                ///< Transaction::snapshot and commit_timestamp are not consecutive, and two that
                ///< commit at the same moment, and have written nothing in common, may have the
                ///< same
  kAutomatic,   ///< kProcessors where the process may run on kProcessorsForClock processors or more
                ///< and it is not refused; else kCounter
};
/// From so many processors on one word that all commits write is what they wait for
/// (docs/scaling.md).
inline constexpr unsigned kProcessorsForClock = 32;

/// Which lines of emulated SCM a thread reads at the speed of its caches.
enum class ScmCache : std::uint8_t {
  kTask,       ///< those that its transaction, query, or task of recovery or a merge has touched
  kProcessor,  ///< those that it has touched among 2^18 lines, a direct-mapped cache of 16 MB
};

struct OpenOptions {
  /// A regular file, created with mode 0600; no symbolic link is followed. No zero byte.
  std::string path = {};
  OpenMode mode = OpenMode::kOpenOrCreate;
  /// Largest size the pool can grow to, bytes, 8 MB to 16 TB; fixed at creation. The file has this
  /// length and is sparse: space is taken as it is needed.
  std::uint64_t max_bytes = std::uint64_t{64} << 30;
  /// Step in which the pool grows, bytes, a multiple of 4096; fixed at creation. Chunks of tables
  /// created by this opener have about a 16th of it, 4 MB at most: for a pool of less than 1 GB
  /// make it smaller.
  std::uint64_t segment_bytes = std::uint64_t{64} << 20;
  /// Free space kept allocated and touched ahead of the writers by a background thread, bytes; 0:
  /// no such thread.
  std::uint64_t grow_ahead_bytes = std::uint64_t{64} << 20;
  /// Of all tables; fixed at creation, without effect on a pool that exists (Statistics tells its).
  IndexMode index_mode = kDefaultIndexMode;
  /// With IndexMode::kHint: how often a thread makes the index entries of new dictionary values
  /// durable, milliseconds, up to a day; 0: no such thread, whoever commits new values does it now
  /// and then.
  std::chrono::milliseconds hint_interval{10};
  Ready ready = Ready::kFirstAnswer;
  /// Whether a thread does what Ready::kFirstAnswer leaves for later. Without
  /// it that is done when it is needed: indexes are made by the first to write to a table or to
  /// look a key up; rows are found before their space is used again, before a merge.
  bool sweeps_in_background = true;
  /// How much of the pool a thread enters into the process's page tables right after opening:
  /// indexes first, then dictionaries, rows of the delta, the newest first, main, and long strings;
  /// bytes. 0: no such thread, and whoever reads a page first waits for it. On medium `file` that
  /// may read it from the disk, so there it is a quarter of the machine's memory at most.
  std::uint64_t warm_bytes_max = std::uint64_t{8} << 30;
  /// Transactions that can be open at one time, read-only ones included, 1 to 4000. May differ from
  /// one opening to the next.
  std::uint32_t slots_max = 128;
  CommitClock clock = CommitClock::kAutomatic;
  /// When tables are merged by themselves, each until it gets a policy of its own.
  MergePolicy merge_policy = {};
  /// How much the thread that does so stands back for others, 0 to 19, as nice(1) has it: with 10
  /// it gets a tenth of what a busy thread gets, and all of an idle processor. Threads that it
  /// starts to merge with (MergePolicy::threads) do the same.
  std::uint32_t merge_niceness = 0;
  /// Threads that rebuild indexes at opening; 0: one per processor.
  std::uint32_t recovery_threads = 0;
  /// Total latency of emulated SCM for reads and writes, nanoseconds; 0: the machine's own. Reads
  /// below 90, which DRAM is taken to have, change nothing. Reads are charged in a build of flugs
  /// with FLUGS_SCM only (preset "scm"); any other build refuses scm_read_ns. The model is
  /// docs/decisions/0028-scm-reads.md.
  std::uint32_t scm_read_ns = 0;
  std::uint32_t scm_write_ns = 0;
  ScmCache scm_cache = ScmCache::kTask;
  /// When lines are read or flushed one after the other, each but the first ones waits
  /// the latency divided by this number, as a processor fetches that many at a time. 1: all of it.
  std::uint32_t scm_lines_in_flight = 8;
  /// Called now and then while opening, from any thread, one call at a time. Must not throw.
  std::function<void(const Progress&)> progress = {};
};

/// Counters and sizes of an open database. Sizes in bytes, counters since it was opened.
struct Statistics {
  std::string medium;                      ///< "dax", "emulated", "file" or "memory"
  std::string flush;                       ///< "clwb", "clflushopt", "clflush", "msync", "none"
  std::string guarantee;                   ///< what a commit that returned survives, one sentence
  std::uint64_t pool_reserved_bytes = 0;   ///< the largest size it can grow to
  std::uint64_t pool_allocated_bytes = 0;  ///< taken from the medium
  std::uint64_t pool_used_bytes = 0;       ///< owned by tables and slots
  IndexMode index_mode = IndexMode::kRebuild;
  CommitClock clock = CommitClock::kCounter;  ///< the one in use; not kAutomatic
  std::uint64_t dram_index_bytes = 0;         ///< dictionary and key indexes in DRAM
  std::uint64_t hint_index_bytes = 0;         ///< those in the pool
  std::uint64_t lines_flushed = 0;            ///< cache lines written back since open
  std::uint64_t fences = 0;
  std::uint64_t bytes_written = 0;  ///< bytes handed to flush, before rounding to lines
  /// In a build that charges reads of SCM (OpenOptions::scm_read_ns), else 0: lines of the pool
  /// that tasks touched for the first time, and of these charged with scm_read_ns, and with a part
  /// of it.
  std::uint64_t scm_lines_read = 0;
  std::uint64_t scm_lines_read_in_sequence = 0;
  std::uint64_t transactions_committed = 0;  ///< that wrote something
  std::uint64_t transactions_aborted = 0;    ///< that had written something
  std::uint64_t conflicts = 0;               ///< calls that returned kConflict
  std::uint64_t transactions_open = 0;
  std::uint64_t transactions_ended = 0;  ///< cancelled, over their time limit, abandoned, in the
                                         ///< way of a merge
  std::uint64_t open_ms_max = 0;         ///< of those that are open: TransactionInfo::open
  std::uint64_t idle_ms_max = 0;         ///< of those that are in no call: TransactionInfo::idle
  std::uint64_t rows_locked = 0;         ///< now, by Transaction::find_for_update
  std::uint64_t merges = 0;              ///< of all tables there are, on call or by policy
  std::uint64_t merge_failures = 0;
  double merge_seconds = 0;          ///< at work, see MergeStatus::seconds
  std::uint64_t writes_refused = 0;  ///< by MergePolicy::delta_bytes_max
  std::uint64_t rows_unswept = 0;    ///< that opening left for later, see Ready::kFirstAnswer
  /// Dictionary entries, and row positions of tables with keys, whose indexes in DRAM opening has
  /// left for later: those not made yet, those made since, and how long that took.
  std::uint64_t index_entries_left = 0;
  std::uint64_t index_entries_built = 0;
  double index_build_ms = 0;
  /// Of the pool, entered into page tables after opening (OpenOptions::warm_bytes_max): how much,
  /// what is still to come, and how long that took.
  std::uint64_t warmed_bytes = 0;
  std::uint64_t warm_bytes_left = 0;
  double warm_ms = 0;
};

/// A transaction that is open. Times are counted from when somebody looked first, by
/// Database::transactions or statistics: look now and then, and they are right but for the time
/// between two looks. That transactions are looked at costs them next to nothing.
struct TransactionInfo {
  TransactionId id;
  std::uint32_t slot = 0;  ///< as merges name it
  AccessMode mode = AccessMode::kReadWrite;
  Isolation isolation = Isolation::kSnapshot;
  /// Commits since its snapshot: what it holds back. With CommitClock::kProcessors ticks of some
  /// nanoseconds.
  std::uint64_t snapshots_behind = 0;
  std::chrono::milliseconds open{0};  ///< at least
  std::chrono::milliseconds idle{0};  ///< at least so long without the beginning of a call
  bool is_in_call = false;            ///< as of now
  bool is_asked_to_end = false;
  bool is_ended = false;  ///< undone; counts as open until its owner destroys it
};

struct ColumnStatistics {
  std::string name;
  Type type = Type::kInt64;
  bool dictionary_encoded = true;
  std::uint64_t dictionary_entries = 0;
  /// In the pool, strings included, and what it had before it began anew (decisions 0026, 0027) as
  /// long as rows are of that time: a merge gives it back.
  std::uint64_t dictionary_bytes = 0;
  std::uint32_t cell_bits = 0;  ///< width in the newest chunk's rows
};

struct TableStatistics {
  std::string name;
  std::uint64_t rows_reserved = 0;  ///< row positions handed out: live, dead and never committed
  std::uint64_t rows_free = 0;      ///< of these, ready to be reused
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;      ///< of all chunks
  std::uint64_t groups = 0;           ///< of the chunks, those that are row groups of main
  std::uint64_t group_rows = 0;       ///< rows in groups, dead ones included
  std::uint64_t group_bytes = 0;      ///< of all groups, with their MVCC entries
  std::uint32_t row_bytes = 0;        ///< stride of a row in the newest chunk, MVCC stamps included
  std::uint64_t key_index_bytes = 0;  ///< DRAM
  std::uint64_t index_runs = 0;       ///< in the pool, of key indexes of groups
  std::uint64_t index_run_bytes = 0;  ///< of these
  std::vector<ColumnStatistics> columns;
};

/// An open database. Opening is recovering: the database that comes back already answers queries.
///
/// Thread-safety: every function may be called from any thread, except moving, assigning and
/// destroying. A pool is open once at a time; a second opener, in this process or another, gets
/// kBusy.
///
/// In a child that was forked since it was opened, every function fails with kInvalidArgument or
/// returns something empty, as do those of its transactions, and destroying it does nothing: it is
/// the parent's. The child may open the pool itself, once the parent has closed it. A Row that the
/// child inherits holds nothing any more. Do not fork in a function that a call of the library
/// calls, and return from it in the child.
///
/// On a Database that is not open every function fails with kInvalidArgument or returns something
/// empty.
class Database {
 public:
  /// Opens a pool, or creates it, and recovers it; returns when OpenOptions::ready says.
  /// Durable when: it returns ok (a created pool).
  /// Fails with: kNotFound, kAlreadyExists, kBusy (open elsewhere), kIncompatible (foreign file,
  /// newer version), kCorrupt, kReadOnly, kOutOfSpace, kInvalidArgument (an option, or the
  /// processors' clocks cannot be used), kIoError.
  static Result<Database> open(const OpenOptions& options);

  Database() noexcept;
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  /// Closes. Every transaction must have ended; one that is open ends the process.
  ~Database();

  /// A table that refers to another one (ForeignKeySchema) waits for transactions that are open, up
  /// to one second; meanwhile deleting what it may refer to fails with kConflict.
  /// Durable when: it returns ok.
  /// Fails with: kAlreadyExists, kInvalidArgument (the schema, with the reason), kOutOfSpace (the
  /// pool, or 511 tables), kBusy (a transaction that began before is still open, see above).
  Result<TableId> create_table(const TableSchema& schema);
  /// Drops the table and gives its space back. Waits for transactions that are open, up to one
  /// second; then kBusy, and the table is as before. Statements on it fail with kNotFound
  /// meanwhile, its name stays taken. Durable when: it returns ok. Fails with: kNotFound, kBusy,
  /// kConstraintViolated (the foreign key of another table refers to it; it is named).
  Status drop_table(TableId table);

  // What follows changes tables that are there. Each call is one step of its own, not part of any
  // transaction: it is there for all as soon as it returns, or not at all, also across a crash, and
  // nothing takes it back but another call. Transactions go on meanwhile.

  /// Calls a table, a column or a key otherwise. Ids stay what they are, and so does all that goes
  /// by them: rows, transactions that are open, foreign keys of this table and of others, whose
  /// schemas name it by its new name from then on. Who asks for a schema while it is changed gets
  /// that from before, or that from then on. Messages of calls that run meanwhile may use
  /// either name; what is said of damage inside a table's parts may keep the name until the
  /// database is opened again.
  /// Durable when: it returns ok. Fails with: kNotFound (no such table, column or key),
  /// kAlreadyExists (the name is taken), kInvalidArgument (it has not 1 to 63 bytes, or a zero
  /// byte), kOutOfSpace.
  Status rename_table(TableId table, std::string_view name);
  Status rename_column(TableId table, ColumnId column, std::string_view name);
  Status rename_key(KeyId key, std::string_view name);

  /// Adds a key to a table, at most 16 in all, with rows or without. Transactions go on, also those
  /// that write to the table; it is not merged meanwhile (a merge that runs is waited for). First
  /// it waits for all transactions that are open, one of this thread too, up to one second; those
  /// that begin later keep the key up, and already respect it if it is unique: they may be refused
  /// by it before it is there, even if it never will be. Then the rows that there are are entered,
  /// a million in one to five seconds; then it waits for those that began before that, again up to
  /// one second. Look-ups by it are right in every transaction that gets its KeyId.
  ///
  /// Its index is in DRAM, also with IndexMode::kHint: made from the rows after opening, or with
  /// the next merge kept in runs like any other's. Durable when: it returns ok; a crash before
  /// leaves nothing of it. Fails with: kNotFound; kInvalidArgument (the key, with the reason; 16
  /// are there); kConstraintViolated (unique, and two rows have the same: table, key and values are
  /// named); kBusy (a transaction that began before is still open, see above);
  /// kTooManyTransactions; kOutOfSpace; kCorrupt. Then nothing has changed.
  Result<KeyId> add_key(TableId table, const KeySchema& key);
  /// Drops a key; KeyIds of others stay what they are, its own may later be another key's.
  /// Transactions go on: their next look-up by it fails with kInvalidArgument, and serializable
  /// ones that have read by it, other than single rows that they found, get kConflict at commit.
  /// Waits for those that are open, 100 ms at most, to give its memory back; if they go on for
  /// longer that happens when the next key is added or dropped. A merge that runs is waited for.
  /// Durable when: it returns ok.
  /// Fails with: kNotFound, kConstraintViolated (it is the primary key, or a foreign key, which is
  /// named, needs it), kOutOfSpace, kCorrupt.
  Status drop_key(KeyId key);

  /// Adds a column, behind all others, in a time that does not depend on how many rows there are:
  /// those that are there are not touched. They have the column's default, or NULL, from then on,
  /// and keep it when the default of new rows is another one day. The value: the column's number.
  ///
  /// Each call of a transaction takes the columns that there are when it begins, whatever the
  /// transaction's snapshot: one that is open can read the new column in rows that it has, and
  /// write it. Rows may still be given as before, without values of columns that were added since
  /// the table was made, and get what these have by default: Transaction::insert, and insert_rows
  /// if it is given room for the rows' ids, which says how many rows there are. A write that is at
  /// work when the column comes begins again.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound, kAlreadyExists (the name is taken),
  /// kConstraintViolated (NOT NULL without a default, and the table has or once had rows),
  /// kInvalidArgument (an auto-increment column; more than 1024, with those that were dropped; a
  /// row could get too large; whatever else create_table refuses), kOutOfSpace.
  Result<ColumnId> add_column(TableId table, const ColumnSchema& column);
  /// Drops a column, at once: its name is free, and its values are not read again. Other columns
  /// keep their numbers, and this number is given to no other: who uses it hears
  /// kInvalidArgument, or gets NULL from a Row; a row of values still has a place for it, which
  /// must be NULL. Queries that run go on to the end with the values that they began with; a
  /// Transaction::scan of the column ends with kInvalidArgument.
  ///
  /// Chunks that are begun from then on have no room for it, and merges leave its values out. Its
  /// dictionary and long texts are given back by the next opening that finds no chunk or row
  /// group with values of it, as after a merge of everything; some 500 bytes remain.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound (no such table or column),
  /// kConstraintViolated (a key, check or foreign key names the column: the message says which;
  /// or it is the only one), kOutOfSpace.
  Status drop_column(TableId table, ColumnId column);
  /// Gives a column another type, in a time that does not depend on how many rows there are: those
  /// that are there are not touched, but read as values of the new type until a merge writes them
  /// as such. An int32 can become an int64, a string bytes and bytes a string: every value stays
  /// what it is. Its own type: the column holds its values directly from then on
  /// (Encoding::kDirect), as one does whose type has changed. Keys, checks, its default, its
  /// numbers and its ColumnId stay.
  ///
  /// Each call of a transaction takes the type that there is when it begins, whatever the
  /// transaction's snapshot. A write that is at work in that moment begins again. A query
  /// or scan that runs goes on to the end with the type that it began with. Programs that read the
  /// column by Row::get_int32 must ask for get_int64 from then on. Until they are merged, queries
  /// read rows of the delta of before row by row.
  ///
  /// Merges of whatever scope write row groups anew that have the column under an earlier type.
  /// What that left behind, a dictionary, long texts, is given back by the merge that moves the
  /// last row of it. A merge that runs is waited for.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound (no such table or column), kInvalidArgument
  /// (not one of these changes; a check that compares a text column with one of its former type,
  /// as only integers of either size compare; a row could get too large), kBusy (rows are of 255
  /// types that it had: merge first), kConstraintViolated (a foreign key names the column, or
  /// refers to a key that does: the message says which), kOutOfSpace.
  Status change_type(TableId table, ColumnId column, Type type);

  /// No number up to `last` is given any more by the table's auto-increment column: for rows that
  /// brought their numbers with them. Only ever upwards; a lower one changes nothing. Inserts that
  /// run meanwhile may still get a lower number. Durable when: it returns ok.
  /// Fails with: kNotFound, kInvalidArgument (no such column, or no such number in its type).
  Status skip_numbers(TableId table, std::int64_t last);
  /// Fails with: kNotFound; so do the next three.
  Result<TableId> find_table(std::string_view name) const;
  /// As it was completed at creation, with what has been changed since: encodings chosen, columns
  /// of the primary key NOT NULL.
  Result<TableSchema> schema(TableId table) const;
  Result<ColumnId> find_column(TableId table, std::string_view name) const;
  /// `name` is the key's name; "primary" is the primary key.
  Result<KeyId> find_key(TableId table, std::string_view name) const;
  /// Every table, in the order of creation.
  std::vector<TableId> tables() const;

  /// Fails with: kTooManyTransactions (OpenOptions::slots_max are open already).
  Result<Transaction> begin(AccessMode mode = AccessMode::kReadWrite,
                            Isolation isolation = Isolation::kSnapshot);

  /// Runs `work` in a transaction, and again in another one, until one commits. `work` gets a
  /// transaction that has just begun, and returns ok for it to be committed; it may also end it
  /// itself. It is called again, after a pause, when it or the commit fails with kConflict, kBusy
  /// or kTooManyTransactions, or because a merge had the transaction ended; so it must not leave
  /// anything behind, outside of the transaction, that counts. Any other failure is returned.
  ///
  /// Pauses are drawn at random, the longer the more others have been trying again for longer, up
  /// to RetryOptions::pause_max; who has been at it for the longest does not pause, and after eight
  /// failures all others that are in `run` let it go first, each for 100 ms at most.
  /// Fails with: what the last attempt failed with, and how many there were; kInvalidArgument (the
  /// options).
  Status run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options = {},
             RetryReport* report = nullptr);

  /// Starts fetching what `Transaction::find` with the same arguments will need; call it as early
  /// as the key is known, before `begin`, and for several keys before the first of several finds:
  /// the cache misses overlap with the work and with each other. Never fails, changes nothing.
  void prefetch(KeyId key, std::span<const Value> values) const noexcept;
  void prefetch(KeyId key, std::initializer_list<Value> values) const noexcept {
    prefetch(key, std::span<const Value>(values.begin(), values.size()));
  }

  /// Every open transaction, by slot. Costs microseconds.
  std::vector<TransactionInfo> transactions() const;
  /// Has a transaction end, from any thread: its next call fails with kCancelled, commit too, and
  /// so does one that goes through rows, or waits, within a batch of them; then what it wrote is
  /// undone. Returns at once. A commit that is under way is not stopped.
  /// Fails with: kNotFound (not open, or not any more).
  Status cancel(TransactionId transaction) noexcept;
  /// Ends a transaction that makes no call any more: undoes what it wrote, and lets go of its
  /// snapshot, in this thread. It must be known (`transactions`) to have made none for `idle`, 10
  /// ms at least. When its owner comes back after all, its calls fail with kCancelled; but rows
  /// that it has been given are no longer valid: call this only if nobody reads them any more.
  /// Its slot stays taken until its owner destroys it. If it can be reached, destroying it, from
  /// any thread, is better.
  /// Fails with: kNotFound, kBusy (a call is under way, or was too short ago: then it was
  /// cancelled, or nothing was done), kInvalidArgument.
  Status end_abandoned(TransactionId transaction, std::chrono::milliseconds idle);

  /// Moves rows of a table into the read-optimised main store, chunk by chunk, and gives back the
  /// space of those that have died; rows keep their ids (docs/decisions/0012). Transactions go on:
  /// readers never wait; writers of a chunk wait while its deletions are carried over, which takes
  /// less than a millisecond. One merge of a table at a time. Chunks that are being filled stay
  /// where they are, unless MergeOptions::scope is MergeScope::kEverything.
  /// Durable when: it returns ok; chunk by chunk: a crash leaves each as it was or merged.
  /// Fails with: kNotFound; kInvalidArgument; kBusy (the table is being merged or dropped already;
  /// or a transaction that began earlier was still open after `patience`: nothing was merged);
  /// kOutOfSpace (what had been merged by then stays so).
  /// Source: SOFORT (DaMoN 2014), section 2.
  Result<MergeReport> merge(TableId table, const MergeOptions& options = {});

  /// Has a table merged by the database's own thread from now on, or not any more; a merge that
  /// runs goes on. Never fails for want of that thread: `merge_status` says so, and starting it is
  /// tried again. Fails with: kNotFound; kInvalidArgument, saying what is allowed.
  Status set_merge_policy(TableId table, const MergePolicy& policy);
  /// Fails with: kNotFound.
  Result<MergePolicy> merge_policy(TableId table) const;
  /// Costs microseconds, more with many row groups. Fails with: kNotFound.
  Result<MergeStatus> merge_status(TableId table) const;

  /// Does what opening left for later (Ready::kFirstAnswer), together with the thread that is at
  /// it. Fails with: kCorrupt (what opening would have said, had it looked: the first damage found.
  /// A table with such is not merged, and dead rows beside the damage are not used again; if an
  /// index could not be made, nothing is written to the table any more).
  /// Hints in the pool for which there is no room stay left: their values are searched for.
  /// Until it has returned ok, damage in a dictionary entry may be read as another value.
  Status finish_opening();
  /// What opening found and did. Valid while the database is open.
  const RecoveryReport& recovery_report() const noexcept;
  /// Counters of running transactions may lag behind. Costs microseconds, more with many tables.
  Statistics statistics() const;
  /// Fails with: kNotFound.
  Result<TableStatistics> table_statistics(TableId table) const;

  /// Goes through every table: every dictionary entry against its index, every visible row's cells,
  /// every key index against the rows. (That every extent has one owner is checked at opening.)
  /// Takes long; nobody may write meanwhile.
  /// Fails with: kCorrupt, saying what and where; kBusy when transactions are open.
  Status verify(const std::function<void(const Progress&)>& progress = {});

  bool is_open() const noexcept { return core_ != nullptr; }
  const std::string& path() const noexcept;

 private:
  friend struct engine::DatabaseAccess;
  std::unique_ptr<engine::DatabaseCore> core_;
};

}  // namespace flugs
