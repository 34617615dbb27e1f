#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/function_ref.h"
#include "flugs/ids.h"
#include "flugs/merge.h"
#include "flugs/open_options.h"
#include "flugs/prepared.h"
#include "flugs/progress.h"
#include "flugs/recovery_report.h"
#include "flugs/retry.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "flugs/table.h"
#include "flugs/transaction.h"

namespace flugs {

namespace engine {
struct DatabaseAccess;
}  // namespace engine

/// Counters and sizes of an open database. Sizes in bytes, counters since it was opened.
struct Statistics {
  std::string medium;  ///< "dax", "emulated", "file", "memory" or "read-only"
  /// "clwb", "clflushopt", "clflush", "journal", "none"; "eadr": no line needs a flush, because the
  /// caches survive a power cut, too.
  std::string flush;
  /// How often the devices below the pool lost their power without a proper shutdown, when it was
  /// opened; or "not known".
  std::string dirty_shutdowns;
  /// What a commit that has returned survives, in one sentence.
  std::string guarantee;
  std::string guarantee_soon;              ///< the same if it is not kOnReturn
  std::uint64_t pool_reserved_bytes = 0;   ///< the largest size it can grow to
  std::uint64_t pool_allocated_bytes = 0;  ///< taken from the medium
  std::uint64_t pool_used_bytes = 0;       ///< owned by tables and slots
  std::uint64_t pool_free_bytes = 0;       ///< taken from the medium, but not used
  std::uint64_t pool_overhead_bytes = 0;   ///< header and the like: allocated = used + free + this
  std::uint64_t pool_hole_bytes = 0;       ///< given back to the file system since they were used
  /// Kept for deletions and merges when the pool is nearly full (decision 0041).
  std::uint64_t pool_reserve_bytes = 0;
  /// New rows can take so much before the pool has its largest size, if the medium has it; without
  /// the reserve.
  std::uint64_t pool_left_bytes = 0;
  IndexPlace index_place = IndexPlace::kDram;
  CommitClock clock = CommitClock::kCounter;  ///< the one in use; not kAutomatic
  std::uint64_t dram_index_bytes = 0;         ///< dictionary and key indexes in DRAM
  std::uint64_t hint_index_bytes = 0;         ///< those in the pool
  std::uint64_t lines_flushed = 0;            ///< cache lines written back since open
  std::uint64_t fences = 0;
  std::uint64_t bytes_written = 0;  ///< bytes handed to flush, before rounding to lines
  /// The journal on medium `file`, checkpoints apart: bytes of its records, bytes written to the
  /// device (records are padded to whole pages), and writes of the device. Other media: 0.
  std::uint64_t journal_record_bytes = 0;
  std::uint64_t journal_written_bytes = 0;
  std::uint64_t journal_writes = 0;
  /// Pieces of main, and their bytes, that were written past the journal
  /// (Tuning::direct_write_bytes).
  std::uint64_t direct_writes = 0;
  std::uint64_t direct_written_bytes = 0;
  std::uint64_t commits_soon = 0;       ///< with Durability::kSoon, on a medium with a journal
  std::uint64_t commits_soon_late = 0;  ///< of these, found durable later than wanted
  /// Lines of the pool that tasks touched for the first time, in a build that charges reads of SCM
  /// (Tuning::scm_read_ns); else 0. The first counter has those charged with scm_read_ns, and
  /// the second one those charged with a part of it.
  std::uint64_t scm_lines_read = 0;
  std::uint64_t scm_lines_read_in_sequence = 0;
  std::uint64_t transactions_committed = 0;  ///< only those that wrote something
  std::uint64_t transactions_aborted = 0;    ///< only those that had written something
  std::uint64_t conflicts = 0;               ///< calls that returned kConflict
  std::uint64_t transactions_open = 0;
  std::uint64_t transactions_ended = 0;  ///< after Database::cancel, a time limit or end_abandoned,
                                         ///< or for a merge
  std::uint64_t open_ms_max = 0;         ///< the longest of all open ones: TransactionInfo::open
  std::uint64_t idle_ms_max = 0;         ///< the longest of all outside a call:
                                         ///< TransactionInfo::idle
  std::uint64_t rows_locked = 0;         ///< now, by Transaction::lock
  std::uint64_t merges = 0;              ///< of all existing tables, by call or by policy
  std::uint64_t merge_failures = 0;
  double merge_seconds = 0;          ///< spent merging, see MergeStatus::seconds
  std::uint64_t writes_refused = 0;  ///< by MergePolicy::delta_bytes_max
  std::uint64_t rows_unswept = 0;    ///< left for later by opening, see Ready::kFirstAnswer
  /// Dictionary entries, and row positions of tables with keys, whose indexes in DRAM opening has
  /// left for later: the number still missing, the number made since, and the time that took.
  std::uint64_t index_entries_left = 0;
  std::uint64_t index_entries_built = 0;
  double index_build_ms = 0;
  /// Bytes of the pool entered into page tables after opening (Tuning::warm_bytes_max), bytes
  /// still to come, and the time spent so far.
  std::uint64_t warmed_bytes = 0;
  std::uint64_t warm_bytes_left = 0;
  double warm_ms = 0;
};

/// An open transaction. Its times count from the first look at it, by Database::transactions or
/// statistics. Look regularly: then a time is too short by at most the interval between two looks.
/// Looking costs the transactions next to nothing.
struct TransactionInfo {
  TransactionId id;
  std::uint32_t slot = 0;  ///< the number that merges name it by
  AccessMode mode = AccessMode::kReadWrite;
  Isolation isolation = Isolation::kSnapshot;
  /// Commits since its snapshot, whose old versions it keeps alive. With CommitClock::kProcessors,
  /// ticks of some nanoseconds.
  std::uint64_t snapshots_behind = 0;
  std::chrono::milliseconds open{0};  ///< at least
  std::chrono::milliseconds idle{0};  ///< at least this long since a call began
  bool is_in_call = false;            ///< at the moment of looking
  bool is_asked_to_end = false;
  bool is_ended = false;  ///< undone; it counts as open until its owner destroys it
};

struct ColumnStatistics {
  std::string name;
  Type type = Type::kInt64;
  bool dictionary_encoded = true;
  std::uint64_t dictionary_entries = 0;
  /// In the pool, strings included. While rows still use the dictionary from before the column
  /// began anew (decisions 0026, 0027), that one counts, too; a merge gives it back.
  std::uint64_t dictionary_bytes = 0;
  std::uint32_t cell_bits = 0;  ///< width in the newest chunk's rows
  /// The part of dictionary_bytes that long texts of dead rows have left, and other long texts may
  /// take.
  std::uint64_t text_bytes_reusable = 0;
};

struct TableStatistics {
  std::string name;
  std::uint64_t rows_reserved = 0;  ///< row positions handed out: live, dead or never committed
  std::uint64_t rows_free = 0;      ///< of rows_reserved, those ready for reuse
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;      ///< of all chunks
  std::uint64_t groups = 0;           ///< chunks that are row groups of main
  std::uint64_t group_rows = 0;       ///< rows in groups, dead ones included
  std::uint64_t group_bytes = 0;      ///< of all groups, with their MVCC entries
  std::uint32_t row_bytes = 0;        ///< of a row in the newest chunk, MVCC stamps included
  std::uint64_t key_index_bytes = 0;  ///< DRAM
  std::uint64_t index_runs = 0;       ///< in the pool, of key indexes of groups
  std::uint64_t index_run_bytes = 0;  ///< in the pool, of all index runs
  /// In the pool: all that the table owns there, and its parts. `pool_bytes` of all tables, with
  /// lists of chunks and transaction slots, are Statistics::pool_used_bytes.
  std::uint64_t pool_bytes = 0;
  std::uint64_t delta_bytes = 0;       ///< chunks of rows
  std::uint64_t main_bytes = 0;        ///< row groups, with their MVCC entries
  std::uint64_t dictionary_bytes = 0;  ///< dictionaries and long texts of all columns
  std::uint64_t hint_index_bytes = 0;  ///< indexes of dictionaries and keys, without index runs
  std::uint64_t catalog_bytes = 0;     ///< its schema and what describes its parts
  /// Chunks and index runs that merges have replaced. They are given back after the end of the
  /// transactions that may read them.
  std::uint64_t replaced_bytes = 0;
  /// DRAM of texts that row groups hold compressed and that were read
  /// (MergePolicy::read_text_bytes_max).
  std::uint64_t read_text_bytes = 0;
  std::vector<ColumnStatistics> columns;
};

namespace detail {
template <typename T>
inline constexpr bool kIsResult = false;
template <typename T>
inline constexpr bool kIsResult<Result<T>> = true;
/// Whether a T can be used only as long as the transaction that it comes from.
template <typename T>
inline constexpr bool kEndsWithTransaction =
    std::is_same_v<T, Row> || std::is_same_v<T, Rows> || std::is_same_v<T, std::string_view>;
template <typename T>
inline constexpr bool kEndsWithTransaction<std::optional<T>> = kEndsWithTransaction<T>;
template <typename T>
inline constexpr bool kEndsWithTransaction<Result<T>> = kEndsWithTransaction<T>;
/// Work for Database::run that returns a Result.
template <typename Work>
concept ResultOfWork = kIsResult<std::invoke_result_t<Work&, Transaction&>>;
}  // namespace detail

template <typename Struct>
class TypedTable;

/// An open database. Opening is recovering: the database that comes back already answers queries.
///
/// Thread-safety: every function may be called from any thread, except moving, assigning,
/// closing and destroying. A pool is open once at a time; a second opener, in this process or
/// another, gets kBusy.
///
/// In a forked child, a Database that the parent opened belongs to the parent. Every function of it
/// and of its transactions fails with kInvalidArgument or returns something empty, and destroying
/// it does nothing. A Row that the child inherits holds nothing any more. The child may open the
/// pool itself once the parent has closed it. Do not fork inside a callback of the library and then
/// return from the callback in the child.
///
/// On a Database that was opened with OpenMode::kReadOnly every function that would change it, and
/// `begin` of a transaction that may write, fails with kReadOnly.
///
/// On a Database that is not open every function fails with kInvalidArgument or returns something
/// empty.
class Database {
 public:
  /// Opens a pool, or creates it, and recovers it; OpenOptions::ready says when it returns.
  /// Durable when: it returns ok (a created pool).
  /// Fails with: kNotFound, kAlreadyExists, kBusy (open elsewhere), kIncompatible (foreign file,
  /// newer version), kCorrupt, kReadOnly (the file may not be written: see OpenMode::kReadOnly),
  /// kOutOfSpace, kInvalidArgument (an option, the clocks, or another journal is there), kIoError,
  /// kCancelled (OpenOptions::stop). If an existing pool gets a larger max_bytes also as `grow`.
  static Result<Database> open(const OpenOptions& options);

  Database() noexcept;
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  /// Closes the database. While transactions are open it stays open: their calls go on, the pool
  /// stays locked, and the end of the last of them closes it. No call of a transaction may be
  /// running. Call `close` to learn of open transactions.
  ~Database();
  /// Closes the database, if no transaction is open. Then no function of it can be used any more.
  /// As for destroying, no other thread may use the database meanwhile. Fails with: kBusy
  /// (transactions are open, and the message names the oldest of them; the database stays open),
  /// kInvalidArgument (it is not open).
  Status close();

  /// Creates a table. If it refers to another table (ForeignKeySchema), the call waits up to one
  /// second for all open transactions. Meanwhile, deleting a row to which the new table may refer
  /// fails with kConflict.
  /// Durable when: it returns ok.
  /// Fails with: kAlreadyExists, kInvalidArgument (the schema, with the reason), kOutOfSpace (the
  /// pool, or 511 tables), kBusy (a transaction that began before is still open, see above).
  Result<TableId> create_table(const TableSchema& schema);
  /// Creates several tables: all of them or, when it fails and after a crash, none. A schema may
  /// refer to tables that stand before it in the list, and to tables that exist. Returns the ids in
  /// the order of the list. Durable when: it returns ok. Fails with: as above, and kInvalidArgument
  /// (two schemas have the same name).
  Result<std::vector<TableId>> create_tables(std::span<const TableSchema> schemas);
  Result<std::vector<TableId>> create_tables(std::initializer_list<TableSchema> schemas) {
    return create_tables(std::span<const TableSchema>(schemas.begin(), schemas.size()));
  }
  /// The table of this name if there is one, which must have the columns, keys, foreign keys and,
  /// by name, checks of the schema; else creates it. It may have more of them, and other defaults.
  /// So a program may call it at each start. Durable when: it returns ok. Fails with: as
  /// create_table, and kInvalidArgument (the table exists and differs; the message names the first
  /// difference).
  Result<Table> ensure_table(const TableSchema& schema);
  /// The same, for rows as structs. Fails with: as above, and as table<Struct>.
  template <typename Struct>
  Result<TypedTable<Struct>> ensure_table(const TableSchema& schema);
  /// The same for a whole schema, in the order of the list. All tables that are missing are created
  /// together, or none of them. A schema may refer to tables that stand before it. Durable when: it
  /// returns ok. Fails with: as ensure_table and create_tables.
  Result<std::vector<Table>> ensure_tables(std::span<const TableSchema> schemas);
  Result<std::vector<Table>> ensure_tables(std::initializer_list<TableSchema> schemas) {
    return ensure_tables(std::span<const TableSchema>(schemas.begin(), schemas.size()));
  }
  /// Drops the table and gives its space back. Waits up to one second for all open transactions;
  /// after that it fails with kBusy, and the table is as before. Meanwhile, statements on the table
  /// fail with kNotFound, and its name stays taken. Durable when: it returns ok. Fails with:
  /// kNotFound, kBusy, kConstraintViolated (the foreign key of another table, which the message
  /// names, refers to it).
  Status drop_table(TableId table);

  // The following calls change existing tables. Each call is an atomic step of its own and belongs
  // to no transaction: it takes effect for all users when it returns, or not at all, also across a
  // crash. Only another call can undo it. Transactions go on meanwhile.

  /// Renames a table, a column or a key. Ids stay the same, and so does all that uses them: rows,
  /// open transactions, and foreign keys of this table and of others. Schemas of those foreign keys
  /// give the new name from then on. A call of `schema` at the same time returns the old or the new
  /// schema. Messages of calls that run meanwhile may use either name. Messages about damage inside
  /// a table's parts may use the old name until the database is opened again.
  /// Durable when: it returns ok. Fails with: kNotFound (no such table, column or key),
  /// kAlreadyExists (the name is taken), kInvalidArgument (the name is not 1 to 63 bytes long, or
  /// contains a zero byte), kOutOfSpace.
  Status rename_table(TableId table, std::string_view name);
  Status rename_column(TableId table, ColumnId column, std::string_view name);
  Status rename_key(KeyId key, std::string_view name);

  /// Adds a key to a table with or without rows; a table has at most 16. Transactions go on, also
  /// those that write to the table. A running merge of the table ends first, and no other starts
  /// meanwhile. The call has three parts. First it waits up to one second for all open
  /// transactions, including one of this thread. Transactions that begin later maintain the new
  /// key. If the key is unique, it may already refuse their writes, even if adding it fails in the
  /// end. Second, the existing rows are entered. Third, the call waits up to one second for
  /// transactions that began before that. Look-ups by the key are right in every transaction that
  /// gets its KeyId.
  ///
  /// Its index is in DRAM, also with IndexPlace::kPool. After an opening it is made from the rows,
  /// or, after the next merge, kept in runs like every other key. Durable when: it returns ok; a
  /// crash before leaves nothing of it. `options` tells how many rows are entered, and stops the
  /// call, also while it waits; indexes that opening has left are made first. Fails with:
  /// kNotFound;
  /// kInvalidArgument (the key, with the reason; the table has 16 keys); kConstraintViolated (the
  /// key is unique and two rows have the same values; the message names table, key and values);
  /// kBusy (a transaction that began before is still open, see above; the message names it);
  /// kTooManyTransactions; kOutOfSpace; kCorrupt; kCancelled (CallOptions::stop). After a failure
  /// nothing has changed.
  Result<KeyId> add_key(TableId table, const KeySchema& key, const CallOptions& options = {});
  /// Drops a key. KeyIds of other keys stay the same; a later key may get its KeyId. Transactions
  /// go on: their next look-up by it fails with kInvalidArgument. Serializable transactions that
  /// have read by it get kConflict at commit, unless they only found single rows. The call waits up
  /// to 100 ms for open transactions and then frees the memory of the key; if they stay open for
  /// longer, the next call that adds or drops a key frees it. A running merge ends first. Durable
  /// when: it returns ok.
  /// Fails with: kNotFound, kConstraintViolated (it is the primary key, or a foreign key, which the
  /// message names, needs it), kOutOfSpace, kCorrupt.
  Status drop_key(KeyId key);

  /// Adds a column behind all others. The time does not depend on the number of rows, because
  /// existing rows are not touched. They have the column's default, or NULL, from then on, and keep
  /// it even if the default for new rows changes one day. Returns the column's number.
  ///
  /// Each call of a transaction uses the columns that exist when the call begins, whatever the
  /// transaction's snapshot. So an open transaction can read and write the new column in rows that
  /// it already has. Callers may still give rows without values of columns that were added since
  /// the table was created; those columns get their defaults. This holds for Transaction::insert,
  /// and for insert_rows if `ids` is given, whose size tells how many rows there are. A write that
  /// is running when the column is added starts again.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound, kAlreadyExists (the name is taken),
  /// kConstraintViolated (NOT NULL without a default, and the table has or once had rows),
  /// kInvalidArgument (an auto-increment column; more than 1024 columns, including dropped ones; a
  /// row could get too large; every other reason for which create_table refuses a column),
  /// kOutOfSpace.
  Result<ColumnId> add_column(TableId table, const ColumnSchema& column);
  /// Drops a column at once: its name is free, and its values are not read again. Other columns
  /// keep their numbers, and no later column gets this one. A call that uses the number fails with
  /// kInvalidArgument, and a Row returns NULL for it. A row of values still has a place for it,
  /// which must be NULL. Running queries go on to the end with the old values; a Transaction::scan
  /// of the column ends with kInvalidArgument.
  ///
  /// New chunks have no room for the column, and merges leave its values out. The next opening that
  /// finds no chunk or row group with values of it, as after a merge of everything, gives back its
  /// dictionary and long texts; some 500 bytes remain.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound (no such table or column),
  /// kConstraintViolated (a key, check or foreign key, which the message names, uses the column; or
  /// it is the only one), kOutOfSpace.
  Status drop_column(TableId table, ColumnId column);
  /// Gives a column another type. The time does not depend on the number of rows, because existing
  /// rows are not touched: they read as values of the new type until a merge rewrites them. An
  /// int32 can become an int64, a string bytes, and bytes a string: every value stays the same. If
  /// `type` is the type that the column has, the column holds its values directly from then on
  /// (Encoding::kDirect); so does every column whose type has changed. Keys, checks, the default,
  /// auto-increment numbers and the ColumnId stay.
  ///
  /// Each call of a transaction uses the type that the column has when the call begins, whatever
  /// the transaction's snapshot. A write that is running at that moment starts again. A running
  /// query or scan goes on to the end with the old type. Programs that call Row::get_int32 for the
  /// column must call get_int64 from then on. Until a merge, queries read older rows of the delta
  /// row by row.
  ///
  /// Merges of every scope rewrite row groups in which the column has an earlier type. The merge
  /// that moves the last row of an earlier type gives back what that type leaves behind, a
  /// dictionary and long texts. A running merge ends before the call starts.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound (no such table or column), kInvalidArgument
  /// (not one of these changes; a check compares the column with another text column that keeps the
  /// former type, and only integers of different types compare; a row could get too large), kBusy
  /// (rows are of 255 earlier types: merge first), kConstraintViolated (a foreign key, which the
  /// message names, uses the column, or refers to a key that does), kOutOfSpace.
  Status change_type(TableId table, ColumnId column, Type type);
  /// Says where the cells of the table's rows lie in the delta: side by side, or each column apart,
  /// but for groups of columns (TableSchema::column_groups). Chunks that are begun from then on
  /// have that layout. Rows that are there keep theirs until a merge moves them to main, and so do
  /// rows that take free places among them: several layouts may be in the delta at once.
  /// Transactions, queries and merges go on meanwhile, and see no difference.
  ///
  /// Durable when: it returns ok. Fails with: kNotFound (no such table), kInvalidArgument (a row
  /// could get too large; a group names a column that the table does not have, or that another
  /// group has; groups without DeltaLayout::kColumns), kOutOfSpace.
  Status set_delta_layout(TableId table, DeltaLayout layout,
                          std::vector<std::vector<std::string>> column_groups = {});

  /// Adds a check, or drops one. Adding it has three parts. First the call waits up to one second
  /// for all open transactions, including one of this thread. Transactions that begin later obey
  /// the check, even if adding it fails in the end. Second, all rows are checked. Third, the call
  /// waits up to one second for transactions that began before that. So no transaction sees a row
  /// that breaks a check of the schema. A running merge ends first.
  ///
  /// Durable when: it returns ok; a crash before leaves nothing of it. Fails with: kNotFound (no
  /// such table; to drop: no such check), kAlreadyExists (the name is taken), kInvalidArgument (a
  /// reason for which create_table refuses a check), kConstraintViolated (a row breaks it; the
  /// message has check, values and the row's primary key), kBusy (a transaction that began before
  /// is still open, see above; the message names it), kCancelled (CallOptions::stop),
  /// kTooManyTransactions, kOutOfSpace. After a failure nothing has changed.
  Status add_check(TableId table, const CheckSchema& check, const CallOptions& options = {});
  Status drop_check(TableId table, std::string_view name);
  /// Makes a column NOT NULL, with waits and failures as add_check; also fails with
  /// kInvalidArgument if its default is NULL, or if a foreign key sets it to NULL. With `not_null`
  /// false the column may be NULL again. A column that never could be holds its values directly
  /// from then on, like one that changes its type (change_type), and can fail with kBusy as that
  /// call. Also fails with kConstraintViolated: the column gives numbers, or is in the primary key.
  Status set_not_null(TableId table, ColumnId column, bool not_null = true,
                      const CallOptions& options = {});
  /// Sets the default of a column for inserts from now on, or takes it away. Rows that are there
  /// stay as they are. Durable when: it returns ok. Fails with: kNotFound, kInvalidArgument (a
  /// reason for which create_table refuses a default), kOutOfSpace.
  Status set_default(TableId table, ColumnId column, const std::optional<Value>& value);
  /// Adds a foreign key, with waits and failures as add_check, or drops one. What it refers to must
  /// exist, as for create_table. If the table has no key that begins with the columns, it gets one
  /// as by create_table, made as by add_key.
  /// Two tables may refer to each other: to drop such a table, drop a foreign key first. While the
  /// call runs, a statement that would have to change or delete referring rows gets kConflict.
  /// Dropping a foreign key leaves the key that was made.
  ///
  /// Also fails with: kBusy (the place of a dropped key is still in use), kCorrupt.
  Status add_foreign_key(TableId table, const ForeignKeySchema& foreign_key,
                         const CallOptions& options = {});
  Status drop_foreign_key(TableId table, std::string_view name);

  /// Keeps the auto-increment column of the table from giving any number up to `last`: for rows
  /// that bring their own numbers. The counter only moves upwards; a lower number changes nothing.
  /// Inserts that run meanwhile may still get a lower number. Durable when: it returns ok.
  /// Fails with: kNotFound, kInvalidArgument (no such column, or no such number in its type).
  Status skip_numbers(TableId table, std::int64_t last);
  /// Fails with: kNotFound; so do the next three.
  Result<TableId> find_table(std::string_view name) const;
  /// The table with its schema, from which ids of columns and keys are found by name.
  Result<Table> table(std::string_view name) const;
  /// The table with structs as rows: flugs/typed_table.h. Fails with: as above, and
  /// kInvalidArgument (the struct does not fit the table; see TypedTable::bind).
  template <typename Struct>
  Result<TypedTable<Struct>> table(std::string_view name) const;
  /// The schema as completed at creation, with all changes since: the chosen encodings, and NOT
  /// NULL for the columns of the primary key.
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
  /// transaction that has just begun. It returns ok if the transaction must be committed, or ends
  /// the transaction itself. It is called again, after a pause, when it or the commit fails with
  /// kConflict, kBusy or kTooManyTransactions, or when a merge had the transaction ended. So its
  /// side effects outside of the transaction must be harmless when repeated. Any other failure is
  /// returned.
  ///
  /// Pauses are random. They are longer the more calls of `run` have been retrying for longer than
  /// this one, up to RetryOptions::pause_max. The call that has been retrying for the longest
  /// hardly pauses. After its eighth failure, all others in `run` let it go first, each for at most
  /// 100 ms.
  /// Fails with: the failure of the last attempt, with the number of attempts; kInvalidArgument
  /// (the options).
  Status run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options = {},
             RetryReport* report = nullptr);
  /// The same for work that returns a Result: gives the value of the attempt that has committed.
  /// The value must not be a view, as a text Value is: the transaction has ended then.
  ///     const Result<std::int64_t> number = database.run([&](Transaction& t) -> Result<...>
  ///     {...});
  template <typename Work>
    requires detail::ResultOfWork<Work>
  std::invoke_result_t<Work&, Transaction&> run(Work&& work, const RetryOptions& options = {},
                                                RetryReport* report = nullptr) {
    static_assert(!detail::kEndsWithTransaction<std::invoke_result_t<Work&, Transaction&>>,
                  "a Row or a view of a text is not valid any more when the transaction has ended: "
                  "let the work return a copy, such as row.get<std::string>(column)");
    std::optional<std::invoke_result_t<Work&, Transaction&>> last;
    const auto once = [&](Transaction& transaction) -> Status {
      last.emplace(work(transaction));
      return last->ok() ? Status() : last->status();
    };
    if (Status s = run(FunctionRef<Status(Transaction&)>(once), options, report); !s.ok()) return s;
    return *std::move(last);
  }

  /// Finds a unique key, and columns of its table, once for many look-ups and writes: see Prepared.
  /// Fails with: kNotFound (no such table), kInvalidArgument (no such key or column; the key is not
  /// unique).
  Result<Prepared> prepare(KeyId key, std::span<const ColumnId> columns) const;
  Result<Prepared> prepare(KeyId key, std::initializer_list<ColumnId> columns = {}) const {
    return prepare(key, std::span<const ColumnId>(columns.begin(), columns.size()));
  }

  /// Starts fetching what `Transaction::get` with the same arguments will need. Call it as soon as
  /// you know the key, before `begin`, and for several keys before the first of several calls: then
  /// the cache misses overlap with the work and with each other. Never fails, changes nothing.
  void prefetch(KeyId key, std::span<const Value> values) const noexcept;
  void prefetch(KeyId key, std::initializer_list<Value> values) const noexcept {
    prefetch(key, std::span<const Value>(values.begin(), values.size()));
  }

  /// Every open transaction, by slot. Costs microseconds.
  std::vector<TransactionInfo> transactions() const;
  /// Ends a transaction from any thread. Its next call, also commit, fails with kCancelled; a call
  /// that is going through rows or waiting fails within a batch of rows. Then its writes are
  /// undone. Returns at once. A commit that is already running is not stopped.
  /// Fails with: kNotFound (it is not open, or no longer).
  Status cancel(TransactionId transaction) noexcept;
  /// Ends a transaction whose owner makes no more calls: undoes its writes and lets go of its
  /// snapshot, in this thread. `transactions` must have shown it without a call for `idle`, at
  /// least 10 ms. If its owner comes back, its calls fail with kCancelled. Rows that it was given
  /// are no longer valid: call this only if no thread reads them any more. Its slot stays taken
  /// until its owner destroys it. If you can reach the Transaction itself, destroy it instead, from
  /// any thread.
  /// Fails with: kNotFound, kBusy (a call is running or was too recent; the transaction was
  /// cancelled, or nothing was done), kInvalidArgument.
  Status end_abandoned(TransactionId transaction, std::chrono::milliseconds idle);

  /// Names all that is committed now: what this thread has committed, and what it has seen of
  /// others, is part of it.
  DurableToken durable_token() const noexcept;
  /// Whether all that the token names is durable: what Statistics::guarantee says holds for it. A
  /// token of another Database, or of an earlier opening: false.
  bool is_durable(const DurableToken& token) const noexcept;
  /// Returns when all that the token names is durable. Commits with Durability::kOnReturn need no
  /// wait; with kSoon wait before you tell others what must not be taken back.
  /// Fails with: kInvalidArgument (the token is not of this opening of this database), kIoError,
  /// kOutOfSpace (the journal cannot be written: whether it is durable, the next opening shows).
  Status wait_durable(const DurableToken& token);
  /// Calls `callback` once, when wait_durable would return, with its result: in a thread of the
  /// database, or before this call returns. Closing waits for all callbacks, and calls some. So a
  /// callback must not use the database, nor block for long: let it tell another thread.
  void when_durable(const DurableToken& token, std::function<void(const Status&)> callback);

  /// Moves rows of a table into the read-optimised main store, chunk by chunk, and gives back the
  /// space of dead ones; rows keep their ids (docs/decisions/0012). Transactions go on: readers
  /// never wait; writers of a chunk wait for less than a millisecond, while its deletions are
  /// carried over. A table has one merge at a time; the call waits for a merge by policy that is
  /// running, however long it takes. Chunks that are still being filled stay as they
  /// are, unless MergeOptions::scope is MergeScope::kEverything.
  /// Durable when: it returns ok; a crash before leaves each chunk as it was or merged.
  /// Fails with: kNotFound; kInvalidArgument; kBusy (another call merges or drops the table;
  /// or a transaction that began earlier was still open after `patience`: nothing was merged);
  /// kOutOfSpace and kCancelled (chunks merged by then stay merged).
  /// Source: SOFORT (DaMoN 2014), section 2.
  Result<MergeReport> merge(TableId table, const MergeOptions& options = {});

  /// Makes the database's own thread merge the table from now on, or stops that; a running merge
  /// goes on. Does not fail if that thread cannot start: `merge_status` reports it, and the
  /// database tries again. Fails with: kNotFound; kInvalidArgument, whose message says what is
  /// allowed.
  Status set_merge_policy(TableId table, const MergePolicy& policy);
  /// Fails with: kNotFound.
  Result<MergePolicy> merge_policy(TableId table) const;
  /// Costs microseconds, more with many row groups. Fails with: kNotFound.
  Result<MergeStatus> merge_status(TableId table) const;
  /// Estimates what a merge of the table would give back, and what open transactions keep it from
  /// giving back. Reads the stamps of all rows that may be deleted, and all long texts: takes some
  /// nanoseconds a row, so on large tables seconds. Merges and transactions go on meanwhile.
  /// Fails with: kNotFound.
  Result<MergeEstimate> estimate_merge(TableId table) const;

  /// Makes the largest size of the pool `max_bytes` (OpenOptions::max_bytes), rounded down to whole
  /// pages, and takes no space yet. Transactions go on, and nothing moves. Does nothing if the pool
  /// has that size. Durable when: it returns ok; a crash before leaves the pool as it was or grown.
  /// Fails with: kInvalidArgument (less than it has, more than 16 TB, or more address space than
  /// this process has kept for it: four times as much as at opening, 1 TB at least, unless the
  /// process is limited. OpenOptions::max_bytes has no such bound); kOutOfSpace (the file system,
  /// or a limit of the process, allows no file of this size); kIoError. Each message has both
  /// sizes. Then the pool is as before.
  Status grow(std::uint64_t max_bytes);

  /// Does what opening left for later (Ready::kFirstAnswer), together with the thread that is
  /// already doing it. Fails with: kCorrupt (the first damage found, as opening would have reported
  /// it). A damaged table is not merged, and dead rows beside the damage are not reused. If an
  /// index could not be made, the table takes no more writes. Hints for which the pool has no room
  /// stay missing: their values are searched for. Until this has returned ok, a damaged dictionary
  /// entry may be read as another value.
  Status finish_opening();
  /// What opening found and did. Valid while the database is open.
  const RecoveryReport& recovery_report() const noexcept;
  /// Counters of running transactions may lag behind. Costs microseconds, more with many tables.
  Statistics statistics() const;
  /// Fails with: kNotFound.
  Result<TableStatistics> table_statistics(TableId table) const;

  /// Checks every table: every dictionary entry against its index, the cells of every visible row,
  /// and every key index against the rows. (Opening already checks that every extent has one
  /// owner.) Takes long. No thread may write meanwhile.
  /// Fails with: kCorrupt, whose message says what is wrong and where; kBusy (transactions are
  /// open); kCancelled.
  Status check(const CallOptions& options = {});

  bool is_open() const noexcept { return core_ != nullptr; }
  const std::string& path() const noexcept;

 private:
  friend struct engine::DatabaseAccess;
  std::unique_ptr<engine::DatabaseCore> core_;
};
static_assert(!std::is_copy_constructible_v<Database>);
static_assert(std::is_nothrow_move_constructible_v<Database> &&
              std::is_nothrow_move_assignable_v<Database>);

}  // namespace flugs
