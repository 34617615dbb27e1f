#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "flugs/column_batch.h"
#include "flugs/conflict.h"
#include "flugs/durability.h"
#include "flugs/function_ref.h"
#include "flugs/ids.h"
#include "flugs/progress.h"
#include "flugs/row.h"
#include "flugs/rows.h"
#include "flugs/scan.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs {

namespace engine {
class TransactionContext;
class DatabaseCore;
class Savepoints;
struct RowCursorWay;
class Table;
struct TransactionAccess;
}  // namespace engine

namespace query {
class Expr;
struct Assignment;
}  // namespace query

enum class AccessMode : std::uint8_t {
  kReadWrite,  ///< costs no more than kReadOnly until the first write
  /// A snapshot that blocks no other transaction and stores nothing in the pool. No conflict ends
  /// it, but Database::cancel, Database::end_abandoned, a time limit or a merge may.
  kReadOnly,
  /// The same, of a state that no power cut takes back. On a medium with a journal it may be older
  /// than the newest commit, also than one of the same thread, because commits before that are not
  /// durable yet: Transaction::snapshot says how old. `begin` does not wait, and no call waits
  /// for the device. On other media all that is visible is durable: as kReadOnly.
  kReadOnlyDurable,
};

/// What a transaction may see of concurrent ones. Levels can be mixed: each transaction gets the
/// level that it asked for, and serializable ones are serializable among themselves.
/// Source: anomalies as in Adya, "Weak Consistency" (1999); docs/concurrency.md has the table.
enum class Isolation : std::uint8_t {
  /// Reads the database as committed when the transaction began. If two transactions change one
  /// row, the second one is refused (kConflict). Admits write skew (G2-item) and its form with
  /// predicates (G2).
  kSnapshot,
  /// As kSnapshot; in addition, commit fails with kConflict if another transaction has committed a
  /// change to what this one read since: rows, absent keys, ranges, tables. So transactions take
  /// effect one after the other, in the order of their commit time-stamps, which agrees with real
  /// time. A transaction that wrote nothing never fails, and a kReadOnly one does not record what
  /// it reads.
  kSerializable,
  /// Each call reads the database as committed when the call began; a row that one call found may
  /// be gone for the next (kNotFound). Also admits non-repeatable reads, lost updates of what an
  /// earlier call read, and phantoms. A query (flugs/query.h) is one call.
  kReadCommitted,
};

/// A column and its new value.
struct ColumnValue {
  ColumnId column = {};
  Value value = {};
};
static_assert(sizeof(ColumnValue) == 32 && std::is_trivially_copyable_v<ColumnValue>);

/// How long a call waits for a row that another transaction has locked or is writing; 0: it fails
/// at once.
struct LockWait {
  std::chrono::milliseconds limit{1000};
};

/// The result of a call that inserts a row.
struct Inserted {
  RowId row;
  /// The number that the row has in the auto-increment column of the table, given or brought along;
  /// 0 if the table has no such column.
  std::int64_t number = 0;
  operator RowId() const noexcept { return row; }  // NOLINT(google-explicit-constructor)
};

template <>
inline constexpr bool detail::kContains<Inserted, RowId> = true;
static_assert(std::is_trivially_copyable_v<Inserted> && std::is_convertible_v<Inserted, RowId>);

/// The result of a call that inserts a row or finds it in the table.
struct Upserted {
  RowId row;
  bool inserted = false;    ///< false: a row with the key existed
  std::int64_t number = 0;  ///< of an inserted row, as in Inserted
};

/// One end of a range on an ordered key: values for the first columns of the key (a prefix), which
/// must outlive the call. An inclusive bound takes every row with the prefix, an exclusive one none
/// of them. A lower bound above the upper one is no error: the range is empty.
///     const std::array<Value, 1> from = {Value::int32(10)}, to = {Value::int32(20)};
///     transaction.rows(key, {from, true}, {to, false}, visit);
struct KeyBound {
  std::span<const Value> values = {};  ///< empty: unbounded
  bool inclusive = true;
};

/// A moment within a transaction, to which rollback_to returns (Transaction::savepoint). A value:
/// copies name the same moment, and destroying a Savepoint does nothing.
class Savepoint {
 public:
  /// Names no moment: every function refuses it.
  Savepoint() noexcept = default;
  friend bool operator==(const Savepoint&, const Savepoint&) noexcept = default;

 private:
  friend class engine::Savepoints;
  Savepoint(std::uint64_t transaction, std::uint64_t number) noexcept
      : transaction_(transaction), number_(number) {}
  std::uint64_t transaction_ = 0;
  std::uint64_t number_ = 0;
};
static_assert(sizeof(Savepoint) == 16 && std::is_trivially_copyable_v<Savepoint>);

/// A unit of work on one snapshot of the database: it takes effect as a whole, or not at all.
///
/// The default is snapshot isolation (see Isolation): the transaction reads the database as
/// committed when it began, and its own writes. If two concurrent transactions change the same row,
/// the second one to try fails at once with kConflict. After a failed call of any function but
/// commit, the transaction stays usable, because the call had no effect. After kConflict, abort and
/// begin again, since this snapshot will never show what the other transaction did.
///
/// Every function fails with kInvalidArgument after the transaction has ended, and with kNotFound
/// when the table does not exist (any more). An open transaction keeps old versions alive and makes
/// drop_table wait. It blocks no other transaction but those that write the rows that it wrote.
///
/// A merge (MergeOptions::ends_old_transactions), any thread (Database::cancel) or its time limit
/// may ask a transaction to end. Then every call but abort fails with kCancelled, and a call that
/// is going through rows fails within a batch of them. With that the transaction has ended: its
/// writes are undone, and rows that it returned are no longer valid. Destroy it, or call abort;
/// until then it counts as open. If only a merge asked, and the next call is commit, commit does
/// not fail.
///
/// Thread-safety: one thread at a time; another thread may take over between calls. Destroying a
/// transaction aborts it. Its database cannot be closed while it is open.
/// Source: SOFORT (DaMoN 2014), section 4 and appendix A, extended to many rows per transaction.
class Transaction {
 public:
  Transaction() noexcept = default;
  Transaction(Transaction&& other) noexcept
      : database_(other.database_),
        context_(std::exchange(other.context_, nullptr)),
        commit_timestamp_(other.commit_timestamp_) {}
  Transaction& operator=(Transaction&& other) noexcept;
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (context_ != nullptr) abort();
  }

  /// Adds a row: one value per column, in schema order.
  /// Durable when: commit returns ok.
  /// Fails with: kAlreadyExists (a unique key is taken), kConflict (a concurrent transaction
  /// inserted or deleted a row with the same unique key), kConstraintViolated (NULL, type, size, a
  /// check or foreign key, which is named),
  /// kInvalidArgument (number of values), kNotFound (no such table), kOutOfSpace, kReadOnly, kBusy
  /// (the delta has reached MergePolicy::delta_bytes_max: end the transaction and try again later).
  Result<Inserted> insert(TableId table, std::span<const Value> values);
  Result<Inserted> insert(TableId table, std::initializer_list<Value> values) {
    return insert(table, std::span<const Value>(values.begin(), values.size()));
  }

  /// The same with values for some columns only. A column that is not given gets its default, or
  /// NULL (ColumnSchema::default_value). For a column given twice the later value counts.
  ///     transaction.insert(orders, {{customer, Value::int64(7)}, {note, Value::string("by
  ///     air")}});
  /// Durable when: commit returns ok. Fails with: as above, and kInvalidArgument (no such column),
  /// kConstraintViolated (no value is given for a column that is NOT NULL and has no default).
  Result<Inserted> insert(TableId table, std::span<const ColumnValue> given);
  template <typename = void>  // so that {} is an empty list of values, as above
  Result<Inserted> insert(TableId table, std::initializer_list<ColumnValue> given) {
    return insert(table, std::span<const ColumnValue>(given.begin(), given.size()));
  }

  /// Adds many rows: `values` holds one row after the other, a value per column. Faster than that
  /// many calls of insert. All rows are added or, when one fails, none. `ids`, unless empty, has an
  /// element per row and receives their ids. `options` tells how many rows are in, and stops the
  /// call within a batch of rows; the transaction goes on without its rows.
  /// Durable when: commit returns ok. Fails with: as insert, and kCancelled.
  Status insert_rows(TableId table, std::span<const Value> values, std::span<RowId> ids = {},
                     const CallOptions& options = {});

  /// Adds many rows that lie column by column in memory, as in arrays of Apache Arrow
  /// (flugs/column_batch.h). Faster than insert_rows, as no Value is made of each cell. All rows
  /// are added or, when one fails, none; the message begins with the row's number in the batch.
  /// `ids` and `options` are as for insert_rows.
  /// Durable when: commit returns ok. Fails with: as insert; also kInvalidArgument (an array, an
  /// offset or a code is out of bounds, or a form does not suit its type), kCancelled.
  Status insert_columns(TableId table, const ColumnBatch& batch, std::span<RowId> ids = {},
                        const CallOptions& options = {});

  /// Makes a new version of a row with some columns changed, and returns its id. A row that this
  /// transaction inserted itself may be changed in place and keep its id. If foreign keys say so,
  /// rows that refer to it change as well, or the call fails as a whole.
  /// Durable when: commit returns ok.
  /// Fails with: kNotFound (the row is not visible), kConflict (another transaction changed or
  /// deleted it), kInvalidArgument (no such column), and as insert.
  Result<RowId> update(TableId table, RowId row, std::span<const ColumnValue> changes);
  Result<RowId> update(TableId table, RowId row, std::initializer_list<ColumnValue> changes) {
    return update(table, row, std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// The same for a row that a call of this transaction has returned, and for the row with the
  /// values of a unique key. Fails with: as above; kInvalidArgument (the key, see get), kNotFound
  /// (no such row).
  Result<RowId> update(const Row& row, std::span<const ColumnValue> changes) {
    return update(row.table(), row.id(), changes);
  }
  Result<RowId> update(const Row& row, std::initializer_list<ColumnValue> changes) {
    return update(row.table(), row.id(), changes);
  }
  Result<RowId> update(KeyId key, std::span<const Value> values,
                       std::span<const ColumnValue> changes);
  Result<RowId> update(KeyId key, std::initializer_list<Value> values,
                       std::initializer_list<ColumnValue> changes) {
    return update(key, std::span<const Value>(values.begin(), values.size()),
                  std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// Deletes a row. The foreign keys that refer to it decide what happens to the referring rows;
  /// the call does all of that or nothing. Durable when: commit returns ok. Fails with: kNotFound
  /// (the row is not visible, or this transaction deleted it), kConflict (also about a referring
  /// row, or while a referring table is created or dropped), kReadOnly, kConstraintViolated (a
  /// foreign key, or a check of a referring row, which the message names).
  Status remove(TableId table, RowId row);
  /// The same for a row that a call of this transaction has returned, and for the row with the
  /// values of a unique key. Fails with: as above; kInvalidArgument (the key, see get), kNotFound
  /// (no such row).
  Status remove(const Row& row) { return remove(row.table(), row.id()); }
  Status remove(KeyId key, std::span<const Value> values);
  Status remove(KeyId key, std::initializer_list<Value> values) {
    return remove(key, std::span<const Value>(values.begin(), values.size()));
  }

  /// The row, if this transaction sees this version of it; another version of the same record does
  /// not count.
  /// Fails with: kNotFound.
  Result<Row> get(TableId table, RowId row) const;

  /// The row whose unique key equals `values`, one per column of the key. NULL equals NULL; then
  /// any one of the rows is found, and if the key is not ordered, the whole table is searched.
  /// Fails with: kNotFound, kInvalidArgument (key not unique, wrong number or type of values).
  Result<Row> get(KeyId key, std::span<const Value> values) const;
  Result<Row> get(KeyId key, std::initializer_list<Value> values) const {
    return get(key, std::span<const Value>(values.begin(), values.size()));
  }
  /// The same, and locks the row. Until this transaction ends, or rolls back to an earlier
  /// savepoint, no other one may write or lock the row (their writes fail with kConflict at once).
  /// Reads go on. Transactions that want the same lock get it in the order in which they came.
  /// Without a primary key, this order holds only among those that wait for the same version of the
  /// row.
  /// After a wait, the row may have changed. With kSnapshot and kSerializable the call then fails
  /// with kConflict, because the snapshot is older. With kReadCommitted it returns the newer
  /// version, on which later writes can build; so a hot row with kReadCommitted never needs a
  /// retry.
  /// Fails with: as get; kBusy (still locked or being written when `wait` is over), kConflict
  /// (changed since the snapshot; or a deadlock, reported to the transaction that would have closed
  /// the circle), kReadOnly, kCancelled (also while it waits; `stop` asked it to: then the
  /// transaction goes on), kInvalidArgument (`wait` below 0). A call that fails has locked nothing.
  Result<Row> lock(KeyId key, std::span<const Value> values, LockWait wait = {},
                   const std::stop_token& stop = {});
  Result<Row> lock(KeyId key, std::initializer_list<Value> values, LockWait wait = {}) {
    return lock(key, std::span<const Value>(values.begin(), values.size()), wait);
  }
  /// The same for a row that a call of this transaction has returned. Fails with: as above. With
  /// kReadCommitted, a newer version of the row is found by the primary key of the table; without
  /// one the call fails with kConflict.
  Result<Row> lock(const Row& row, LockWait wait = {});
  /// `get` for many keys at once: `values` has those of the first key, then those of the second,
  /// and so on, and rows[i] becomes the row of key i, or nothing if there is none. It can take
  /// less time than as many calls of `get`, because look-ups wait for memory at the same time.
  /// Fails with: kInvalidArgument (as `get`; `values` are not as many as `rows` times the columns
  /// of the key), kNotFound (no such table), kCancelled. `rows` has then nothing for the key that
  /// failed, and for those behind it; with kCancelled it has nothing at all.
  Status get_many(KeyId key, std::span<const Value> values,
                  std::span<std::optional<Row>> rows) const;
  /// Starts fetching what `get` with the same arguments will need; several prefetches before
  /// several calls of `get` overlap their cache misses. Never fails, changes nothing.
  void prefetch(KeyId key, std::span<const Value> values) const noexcept;
  void prefetch(KeyId key, std::initializer_list<Value> values) const noexcept {
    prefetch(key, std::span<const Value>(values.begin(), values.size()));
  }

  /// The visible rows whose key begins with `prefix` (one value per leading column), and those
  /// between two bounds of an ordered key, one by one: see Rows. In the order of the key (NULL
  /// first) if it is ordered; else in no order, and `prefix` must cover the hashed columns. Values
  /// are copied. Never fails: Rows::status says what is wrong.
  Rows rows(KeyId key, std::span<const Value> prefix) const;
  Rows rows(KeyId key, std::initializer_list<Value> prefix) const {
    return rows(key, std::span<const Value>(prefix.begin(), prefix.size()));
  }
  Rows rows(KeyId key, KeyBound lower, KeyBound upper) const;

  /// Calls `visit` with every visible row whose key begins with `prefix` (one value per leading
  /// column) until it returns false. If the key is ordered, rows come in key order; else in no
  /// order, and `prefix` must cover the hashed columns. Do not write to the table from within
  /// `visit`.
  /// Fails with kInvalidArgument.
  Status rows(KeyId key, std::span<const Value> prefix, FunctionRef<bool(const Row&)> visit) const;
  Status rows(KeyId key, std::initializer_list<Value> prefix,
              FunctionRef<bool(const Row&)> visit) const {
    return rows(key, std::span<const Value>(prefix.begin(), prefix.size()), visit);
  }

  /// Calls `visit` with every visible row between two bounds of an ordered key, in ascending key
  /// order (NULL first), until it returns false.
  /// Until the index of the key is made after opening (Ready::kFirstAnswer), the call reads all
  /// rows outside of main, and takes 16 bytes of DRAM for each row in the range.
  /// Fails with: kInvalidArgument (key not ordered, bounds of a wrong type or number;
  /// `visit` has written to the table).
  Status rows(KeyId key, KeyBound lower, KeyBound upper, FunctionRef<bool(const Row&)> visit) const;

  /// Reads chosen columns of every visible row that meets `where`, a batch at a time in no
  /// particular order, until `visit` returns false. Uses one thread and reads every row of the
  /// table. Do not write to the table from within `visit`.
  /// Fails with: kInvalidArgument (no such column, another type, or a column was dropped meanwhile:
  /// `visit` has not seen a batch without its values).
  Status scan(TableId table, std::span<const ColumnId> columns, const Predicate& where,
              FunctionRef<bool(const ScanBatch&)> visit) const;
  /// The same for the rows for which any expression is true. Fails with: as above; as Query::where.
  Status scan(TableId table, std::span<const ColumnId> columns, const query::Expr& where,
              FunctionRef<bool(const ScanBatch&)> visit) const;
  Status scan(TableId table, std::initializer_list<ColumnId> columns,
              FunctionRef<bool(const ScanBatch&)> visit) const {
    return scan(table, std::span<const ColumnId>(columns.begin(), columns.size()), Predicate::all(),
                visit);
  }

  // The following calls read and write in one: each takes effect as a whole, or not at all. A
  // unique key names the row, and the call reads what `get` would return. A concurrent change of
  // the row gives kConflict; with kReadCommitted only if it is not committed yet, else the call
  // uses the newer version. Durable when: commit returns ok.

  /// Adds `amount` to an integer or decimal column and returns the sum. `amount` has the column's
  /// type; an int32 may be added to an int64.
  /// Fails with: kNotFound (no such row), kOverflow, kConstraintViolated (the column holds NULL),
  /// kInvalidArgument (the column, or the type of `amount`), and as update.
  Result<Value> add(KeyId key, std::span<const Value> values, ColumnId column, Value amount);
  Result<Value> add(KeyId key, std::initializer_list<Value> values, ColumnId column, Value amount) {
    return add(key, std::span<const Value>(values.begin(), values.size()), column, amount);
  }

  /// Makes the changes if each column in `expected` holds the value beside it, and says whether it
  /// did. Here NULL equals NULL.
  /// Fails with: kNotFound (no such row), kInvalidArgument (a column, or a value of another type),
  /// and as update.
  Result<bool> compare_and_set(KeyId key, std::span<const Value> values,
                               std::span<const ColumnValue> expected,
                               std::span<const ColumnValue> changes);
  Result<bool> compare_and_set(KeyId key, std::initializer_list<Value> values,
                               std::initializer_list<ColumnValue> expected,
                               std::initializer_list<ColumnValue> changes) {
    return compare_and_set(key, std::span<const Value>(values.begin(), values.size()),
                           std::span<const ColumnValue>(expected.begin(), expected.size()),
                           std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// Inserts the row unless a row with the same key exists; a key with NULL in it equals no other.
  /// Fails with: as insert, but kAlreadyExists only when another unique key is taken;
  /// kInvalidArgument (the key is not unique).
  Result<Upserted> insert_if_absent(KeyId key, std::span<const Value> row);
  Result<Upserted> insert_if_absent(KeyId key, std::initializer_list<Value> row) {
    return insert_if_absent(key, std::span<const Value>(row.begin(), row.size()));
  }

  /// The same, but changes the row if it exists. Without `changes`, all columns outside the key get
  /// the values of `row`. Fails with: as insert_if_absent and update.
  Result<Upserted> upsert(KeyId key, std::span<const Value> row,
                          std::span<const ColumnValue> changes = {});
  Result<Upserted> upsert(KeyId key, std::initializer_list<Value> row,
                          std::initializer_list<ColumnValue> changes = {}) {
    return upsert(key, std::span<const Value>(row.begin(), row.size()),
                  std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// Deletes every visible row between two bounds of an ordered key; returns their number.
  /// Fails with: as rows and remove; then no row is deleted.
  Result<std::uint64_t> remove_range(KeyId key, KeyBound lower, KeyBound upper);

  /// Changes every visible row for which `where` is true, and returns their number. The new values
  /// may be computed from the row's columns as they are before the call:
  ///     t.update_where(items, col("stock") < 10, {{"stock", col("stock") + 100}});
  /// The rows are found first, by all threads, and then changed one by one in no particular order:
  /// a value of a unique key must be free when its row is changed. Takes 16 bytes of DRAM and more
  /// for each row. With kReadCommitted the call begins again if another transaction has changed one
  /// of the rows meanwhile.
  /// Durable when: commit returns ok.
  /// Fails with: kInvalidArgument (the condition, or a value, as in Query::where and select; no
  /// such column), kOverflow, kOutOfMemory, kCancelled (CallOptions::stop), and as update; then no
  /// row is changed.
  Result<std::uint64_t> update_where(TableId table, const query::Expr& where,
                                     std::span<const query::Assignment> changes,
                                     const CallOptions& options = {});
  Result<std::uint64_t> update_where(TableId table, const query::Expr& where,
                                     std::initializer_list<query::Assignment> changes,
                                     const CallOptions& options = {});
  /// Deletes every visible row for which `where` is true, and returns their number. With
  /// kReadCommitted it looks again if another transaction has changed one of the rows meanwhile.
  /// Durable when: commit returns ok.
  /// Fails with: kInvalidArgument (the condition), kOverflow, kOutOfMemory, kCancelled
  /// (CallOptions::stop), and as remove; then no row is deleted.
  Result<std::uint64_t> remove_where(TableId table, const query::Expr& where,
                                     const CallOptions& options = {});

  /// Names this moment, so that later writes can be undone without the earlier ones. Savepoints
  /// nest: each lies within those made before it. A savepoint costs some bytes until it is
  /// released, and no flush or fence. While one exists, `update` of a row that this transaction
  /// wrote before it makes a new version with a new id.
  /// Fails with: kInvalidArgument (the transaction has ended), kCancelled.
  Result<Savepoint> savepoint();
  /// Undoes all writes of this transaction since the savepoint. Rows get back their old values and
  /// the ids that they had then; other transactions may write the rows again. The savepoint stays,
  /// later ones are gone. Reads since then still count: a serializable transaction may have based
  /// decisions on them, so its commit answers for them, too. Takes as long as the writes to undo,
  /// and no flush or fence; new values stay in dictionaries, as after an abort. Rows that were read
  /// before stay valid, unless their writes are undone.
  /// Fails with: kInvalidArgument (the savepoint belongs to another transaction or is gone; or the
  /// call comes from within a visitor), kCancelled. Then nothing is undone.
  Status rollback_to(Savepoint savepoint);
  /// Forgets the savepoint and all later ones; the writes since then belong to the savepoint
  /// before, or to the transaction. Optional. Fails with: as rollback_to.
  Status release(Savepoint savepoint);

  /// Makes all writes durable, then visible; ok means both. Statistics::guarantee says what durable
  /// means. Takes two fences up to 64 written rows (an update writes two), a third above, more only
  /// for new space; none when nothing was written. Ends the transaction, also when it fails: then
  /// nothing took effect. A serializable transaction repeats its reads, which takes as long as they
  /// did. A transaction with a later snapshot that meets a row written by it waits for that.
  /// Fails with: kOutOfSpace (the list of written rows does not fit the pool), kConflict (the
  /// transaction is serializable, and what it read has changed since; or another one has committed
  /// a change that breaks a foreign key together with this one's writes, and the message names the
  /// key), kCancelled (an earlier call failed with it).
  Status commit();
  /// The same as `options` say. Others see the writes when it returns ok, whatever the durability,
  /// and Database::durable_token names them. Durable when: kOnReturn: it returns ok; else:
  /// Database::is_durable says so. Fails with: as commit(); kInvalidArgument (an option is out of
  /// bounds, or kProcessCrash on a disk without OpenOptions::crash_ring: the transaction goes on).
  Status commit(const CommitOptions& options);

  /// Ends the transaction without effect. Costs no fence. Safe to call on an ended one.
  void abort() noexcept;

  /// Ends the transaction after this time, if it is still open then, as Database::cancel does. The
  /// latest call counts; 0: no limit. With a limit each call reads the clock. The limit does not
  /// end a transaction that makes no call (Database::end_abandoned).
  /// Fails with: kInvalidArgument (below 0, more than a year, or the transaction has ended),
  /// kCancelled.
  Status set_time_limit(std::chrono::milliseconds limit);

  /// The conflict that the newest failed call met: the row, and the transaction that was first.
  /// Nothing if no call of this transaction failed with kConflict because of a row or a unique key,
  /// or if the transaction has ended. (If commit fails with kConflict, its message has the reason.)
  /// A failed call only notes what it met; this function looks the rest up.
  std::optional<Conflict> conflict() const;

  /// The name for Database::cancel and transactions. A default TransactionId when it has ended.
  TransactionId id() const noexcept;
  bool is_open() const noexcept { return context_ != nullptr; }
  /// The time-stamp of the database state that this transaction reads, with kReadCommitted that of
  /// its last call; 0 once it has ended.
  std::uint64_t snapshot() const noexcept;
  /// The commit time-stamp, after a commit that wrote something; 0 before, and after a commit
  /// without writes.
  std::uint64_t commit_timestamp() const noexcept { return commit_timestamp_; }

 private:
  friend class engine::DatabaseCore;
  friend struct engine::TransactionAccess;
  bool is_usable() const noexcept;
  Status unusable() const;
  Status commit_now(const CommitOptions& options);
  void abort_now() noexcept;
  template <typename Given>
  Result<Inserted> insert_row(TableId table, std::span<const Given> row);
  template <typename Insert>
  Status insert_many(TableId table, Insert&& insert);
  Rows begin_rows(TableId table, engine::RowCursorWay&& way) const;
  Result<engine::Table*> table_to_write(KeyId key);
  template <typename Change>
  Status change_found(KeyId key, std::span<const Value> values, Change&& change);
  Result<std::uint64_t> remove_found(engine::Table& target, std::string_view where,
                                     const CallOptions& options,
                                     FunctionRef<Status(std::vector<RowId>& found)> find);
  Result<engine::Table*> table_to_write(TableId table);
  Result<Upserted> insert_or(KeyId key, std::span<const Value> row,
                             std::span<const ColumnValue> changes);
  template <typename Call>
  Status go_through(const engine::Table& table, Call&& call,
                    FunctionRef<bool(const Row&)> visit) const;

  engine::DatabaseCore* database_ = nullptr;
  engine::TransactionContext* context_ = nullptr;
  std::uint64_t commit_timestamp_ = 0;
};
static_assert(!std::is_copy_constructible_v<Transaction> &&
              !std::is_copy_assignable_v<Transaction>);
static_assert(std::is_nothrow_move_constructible_v<Transaction> &&
              std::is_nothrow_move_assignable_v<Transaction>);
static_assert(sizeof(Result<RowId>) <= 24 && sizeof(Result<Inserted>) <= 40);

}  // namespace flugs
