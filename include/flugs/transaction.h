#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "flugs/function_ref.h"
#include "flugs/ids.h"
#include "flugs/scan.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs {

namespace engine {
class TransactionContext;
class DatabaseCore;
class Savepoints;
class Table;
struct RowView;
struct TransactionAccess;
}  // namespace engine
namespace columns {
class RowLayout;
}  // namespace columns

enum class AccessMode : std::uint8_t {
  kReadWrite,  ///< costs no more than kReadOnly until the first write
  kReadOnly,   ///< a snapshot that never aborts, blocks nobody and stores nothing in the pool
};

/// What a transaction may see of those that run at the same time. All levels hold at once: each
/// transaction gets what it asked for, and serializable ones are so among themselves.
/// Source: anomalies as in Adya, "Weak Consistency" (1999); docs/concurrency.md has the table.
enum class Isolation : std::uint8_t {
  /// Reads what was committed when it began; of two that change one row the second is refused
  /// (kConflict). Admits write skew (G2-item) and its form with predicates (G2).
  kSnapshot,
  /// As kSnapshot; and commit fails with kConflict if somebody else has committed since what would
  /// have been read otherwise: rows, keys that were not there, ranges, tables. So transactions take
  /// effect one after the other, in the order of their commit time-stamps, which is one of real
  /// time. One that wrote nothing never fails, and none that is kReadOnly notes what it reads.
  kSerializable,
  /// Each call reads what was committed when it began; what was found by one call may be gone in
  /// the next (kNotFound). Admits, besides, non-repeatable reads, lost updates of what was read
  /// by an earlier call, and phantoms. A query (flugs/query.h) is one call.
  kReadCommitted,
};

/// One visible version of a row, read in place: getting a value copies at most its eight bytes,
/// strings are views into the pool. Valid until the transaction that returned it ends, writes to
/// this row, or takes back having written it (rollback_to). A column that the table does not have
/// must not be asked for (not checked). Reading a column as another type than its own ends the
/// process in debug builds and gives an unspecified value in release builds; `get` gives the value
/// with its type. No function allocates or fails.
///
/// Thread-safety: as the transaction's.
class Row {
 public:
  Row() noexcept = default;

  RowId id() const noexcept { return id_; }
  Value get(ColumnId column) const noexcept;
  bool is_null(ColumnId column) const noexcept;
  bool get_bool(ColumnId column) const noexcept { return get_int64(column) != 0; }
  std::int32_t get_int32(ColumnId column) const noexcept {
    return static_cast<std::int32_t>(get_int64(column));
  }
  /// Also for decimal (units), date (days), timestamp (microseconds), int32 and bool; 0 for NULL.
  std::int64_t get_int64(ColumnId column) const noexcept;
  /// 0 for NULL.
  double get_double(ColumnId column) const noexcept;
  /// String or bytes; empty for NULL.
  std::string_view get_string(ColumnId column) const noexcept;
  /// Several columns at once, faster than one by one. `out` has the size of `columns`.
  void get(std::span<const ColumnId> columns, std::span<Value> out) const noexcept;
  /// All columns in schema order; `out` has the size of the schema.
  void get_all(std::span<Value> out) const noexcept;

 private:
  friend class engine::Table;
  const engine::Table* table_ = nullptr;
  friend struct engine::RowView;
  const columns::RowLayout* layout_ = nullptr;  // null: the row is in a row group
  const std::byte* cells_ = nullptr;            // or where the group is
  RowId id_;
  std::uint32_t place_ = 0;  // in the group
};

/// A column and its new value.
struct ColumnValue {
  ColumnId column = {};
  Value value = {};
};

/// How long a call waits for a row that another transaction has locked, or is writing; 0: it fails
/// at once.
struct LockWait {
  std::chrono::milliseconds limit{1000};
};

/// What a call has done that inserts a row or finds it there.
struct Upserted {
  RowId row;
  bool inserted = false;  ///< else there was one with the key
};

/// One end of a range on an ordered key: values for the first columns of the key (a prefix), which
/// must outlive the call. Inclusive takes every row with the prefix, exclusive none of them. A
/// lower bound above the upper one is no error: there is no such row.
///     const std::array<Value, 1> from = {Value::int32(10)}, to = {Value::int32(20)};
///     transaction.range(key, {from, true}, {to, false}, visit);
struct KeyBound {
  std::span<const Value> values = {};  ///< empty: unbounded
  bool inclusive = true;
};

/// A moment within a transaction to which it can be taken back (Transaction::savepoint). A value:
/// copies name the same moment, and destroying one does nothing.
class Savepoint {
 public:
  /// Names none: every function refuses it.
  Savepoint() noexcept = default;
  friend bool operator==(const Savepoint&, const Savepoint&) noexcept = default;

 private:
  friend class engine::Savepoints;
  Savepoint(std::uint64_t transaction, std::uint64_t number) noexcept
      : transaction_(transaction), number_(number) {}
  std::uint64_t transaction_ = 0;
  std::uint64_t number_ = 0;
};

/// A unit of work on one snapshot of the database: all of it takes effect, or nothing.
///
/// Isolation is snapshot isolation unless asked for otherwise (Isolation): it reads what was
/// committed when it began, and its own writes; two concurrent transactions that change the same
/// row conflict, and the second one to try is told at once (kConflict). After a failed call of
/// anything but commit the transaction stays usable: the call had no effect. After kConflict the
/// usual thing is to abort and begin again, since this snapshot will not see what the other one
/// did.
///
/// Every function fails with kInvalidArgument after the transaction has ended, and with kNotFound
/// when there is no such table (any more). A transaction left open keeps old versions alive, and
/// drop_table waiting; it blocks no other transaction but the writers of rows that it wrote.
///
/// A merge may ask it to end (MergeOptions::ends_old_transactions), any thread (Database::cancel),
/// or its time limit. Then every call but abort fails with kCancelled, a call that is going through
/// rows within a batch of them, and with that the transaction has ended: what it wrote is undone,
/// rows that it gave are no longer valid. Destroy it, or call abort; until then it counts as open.
/// When it is only a merge that asked, commit does not fail if it is the next call.
///
/// Thread-safety: one thread at a time; it may be handed to another thread in between. Destroying
/// it aborts it. It must end before its database is closed.
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
  Result<RowId> insert(TableId table, std::span<const Value> values);
  Result<RowId> insert(TableId table, std::initializer_list<Value> values) {
    return insert(table, std::span<const Value>(values.begin(), values.size()));
  }

  /// The same with some columns: what is not given is its column's default, or NULL
  /// (ColumnSchema::default_value). A column that is given twice has the later value.
  ///     transaction.insert(orders, {{customer, Value::int64(7)}, {note, Value::string("by
  ///     air")}});
  /// Durable when: commit returns ok. Fails with: as above, and kInvalidArgument (no such column),
  /// kConstraintViolated (nothing is given for a column that is NOT NULL and has no default).
  Result<RowId> insert(TableId table, std::span<const ColumnValue> given);
  template <typename = void>  // so that {} is the list of no values, as above
  Result<RowId> insert(TableId table, std::initializer_list<ColumnValue> given) {
    return insert(table, std::span<const ColumnValue>(given.begin(), given.size()));
  }

  /// Adds many rows: `values` holds them one after the other, a value per column. Faster than as
  /// many calls of insert; all rows are added or, when one fails, none. `ids`, unless empty, has an
  /// element per row and takes their ids.
  /// Durable when: commit returns ok. Fails with: as insert.
  Status insert_rows(TableId table, std::span<const Value> values, std::span<RowId> ids = {});

  /// Makes a new version of a row with some columns changed, and returns its id. A row that this
  /// transaction inserted itself may be changed in place and keep its id. Where foreign keys say so
  /// rows that refer to it are written to as well, or the call fails as a whole.
  /// Durable when: commit returns ok.
  /// Fails with: kNotFound (the row is not visible), kConflict (somebody else changed or deleted
  /// it), kInvalidArgument (no such column), and as insert.
  Result<RowId> update(TableId table, RowId row, std::span<const ColumnValue> changes);
  Result<RowId> update(TableId table, RowId row, std::initializer_list<ColumnValue> changes) {
    return update(table, row, std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// Deletes a row, and what foreign keys say is to be done with those that refer to it, or
  /// nothing. Durable when: commit returns ok. Fails with: kNotFound (the row is not visible, or
  /// deleted by this transaction), kConflict (also with one that refers to it, or while a table
  /// that does is made or dropped), kReadOnly, kConstraintViolated (a foreign key, or a check of
  /// one that refers to it, which is named).
  Status remove(TableId table, RowId row);

  /// The row, if this transaction sees this version of it: not another version of the same record.
  /// Fails with: kNotFound.
  Result<Row> read(TableId table, RowId row) const;

  /// The row whose unique key equals `values`, one per column of the key. NULL equals NULL, and
  /// then any one of the rows is found; unless the key is ordered, by going through the table.
  /// Fails with: kNotFound, kInvalidArgument (key not unique, wrong number or type of values).
  Result<Row> find(KeyId key, std::span<const Value> values) const;
  Result<Row> find(KeyId key, std::initializer_list<Value> values) const {
    return find(key, std::span<const Value>(values.begin(), values.size()));
  }
  /// The same, and locks the row: until this transaction ends, or goes back to a savepoint from
  /// before, nobody else may write it, nor lock it (their writes fail with kConflict at once).
  /// Reads go on. A transaction that wants the lock while another one has it waits in the order of
  /// coming; without a primary key, behind those only that wait for the same version of the row.
  ///
  /// Who has waited sees: with kSnapshot and kSerializable kConflict, if the row was changed, since
  /// its snapshot is older; with kReadCommitted the newer version, so that what it writes rests on
  /// that. For a hot row the latter is what never has to be tried again.
  /// Fails with: as find; kBusy (locked or being written still when `wait` is over), kConflict
  /// (changed since the snapshot; or a deadlock, told to who would have closed the circle),
  /// kReadOnly, kCancelled (also while it waits), kInvalidArgument (`wait` below 0).
  Result<Row> find_for_update(KeyId key, std::span<const Value> values, LockWait wait = {});
  Result<Row> find_for_update(KeyId key, std::initializer_list<Value> values, LockWait wait = {}) {
    return find_for_update(key, std::span<const Value>(values.begin(), values.size()), wait);
  }
  /// Starts fetching what `find` with the same arguments will need; several prefetches before
  /// several finds overlap their cache misses. Never fails, changes nothing.
  void prefetch(KeyId key, std::span<const Value> values) const noexcept;
  void prefetch(KeyId key, std::initializer_list<Value> values) const noexcept {
    prefetch(key, std::span<const Value>(values.begin(), values.size()));
  }

  /// Calls `visit` with every visible row whose key begins with `prefix` (one value per leading
  /// column) until it returns false; in key order when the key is ordered, else in no order, and
  /// then `prefix` must cover the hashed columns. Do not write to the table from within `visit`.
  /// Fails with kInvalidArgument.
  Status find_all(KeyId key, std::span<const Value> prefix,
                  FunctionRef<bool(const Row&)> visit) const;
  Status find_all(KeyId key, std::initializer_list<Value> prefix,
                  FunctionRef<bool(const Row&)> visit) const {
    return find_all(key, std::span<const Value>(prefix.begin(), prefix.size()), visit);
  }

  /// Calls `visit` with every visible row between two bounds of an ordered key, in ascending key
  /// order (NULL first), until it returns false. Do not write to the table from within `visit`.
  /// Until the key is made after opening (Ready::kFirstAnswer), all rows outside of main are looked
  /// at, and 16 bytes of DRAM taken for each in the range.
  /// Fails with: kInvalidArgument (key not ordered, bounds of a wrong type or number).
  Status range(KeyId key, KeyBound lower, KeyBound upper,
               FunctionRef<bool(const Row&)> visit) const;

  /// Reads chosen columns of every visible row that fulfils `where`, a batch at a time in no
  /// particular order, until `visit` returns false. One thread; reads every row of the table. Do
  /// not write to the table from within `visit`.
  /// Fails with: kInvalidArgument (no such column, another type, or a column was dropped meanwhile:
  /// `visit` has not seen a batch without its values).
  Status scan(TableId table, std::span<const ColumnId> columns, const Predicate& where,
              FunctionRef<bool(const ScanBatch&)> visit) const;
  Status scan(TableId table, std::initializer_list<ColumnId> columns,
              FunctionRef<bool(const ScanBatch&)> visit) const {
    return scan(table, std::span<const ColumnId>(columns.begin(), columns.size()), Predicate::all(),
                visit);
  }

  // Calls that read and write in one: each takes effect as a whole, or not at all. Rows are named
  // by a unique key, and what is read of them is what a call of find would give. A concurrent
  // change of the row is kConflict; with kReadCommitted only while it is not committed yet, then
  // the newer version is taken. Durable when: commit returns ok.

  /// Adds `amount` to an integer or decimal column; gives the sum. `amount` has the column's type,
  /// but an int32 may be added to an int64.
  /// Fails with: kNotFound (no such row), kOverflow, kConstraintViolated (the column holds NULL),
  /// kInvalidArgument (the column, or the type of `amount`), and as update.
  Result<Value> add(KeyId key, std::span<const Value> values, ColumnId column, Value amount);
  Result<Value> add(KeyId key, std::initializer_list<Value> values, ColumnId column, Value amount) {
    return add(key, std::span<const Value>(values.begin(), values.size()), column, amount);
  }

  /// Makes the changes if each column in `expected` holds the value beside it, NULL being equal to
  /// NULL, and says whether it did.
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

  /// Inserts the row unless there is one with the same key; a key with NULL in it is no other's.
  /// Fails with: as insert, kAlreadyExists only when another unique key is taken; kInvalidArgument
  /// (the key is not unique).
  Result<Upserted> insert_if_absent(KeyId key, std::span<const Value> row);
  Result<Upserted> insert_if_absent(KeyId key, std::initializer_list<Value> row) {
    return insert_if_absent(key, std::span<const Value>(row.begin(), row.size()));
  }

  /// The same, and if there is one, changes it; without `changes` all columns that are not in the
  /// key get the values of `row`. Fails with: as insert_if_absent and update.
  Result<Upserted> upsert(KeyId key, std::span<const Value> row,
                          std::span<const ColumnValue> changes = {});
  Result<Upserted> upsert(KeyId key, std::initializer_list<Value> row,
                          std::initializer_list<ColumnValue> changes = {}) {
    return upsert(key, std::span<const Value>(row.begin(), row.size()),
                  std::span<const ColumnValue>(changes.begin(), changes.size()));
  }

  /// Deletes every visible row between two bounds of an ordered key; says how many.
  /// Fails with: as range and remove; then no row is deleted.
  Result<std::uint64_t> remove_range(KeyId key, KeyBound lower, KeyBound upper);

  /// Names this moment, so that what follows can be undone without the rest. Savepoints nest: each
  /// lies within those that were made before it. Costs some bytes until it is released, and no
  /// flush or fence. While there is one, `update` of a row that this transaction had written before
  /// makes a new version, with a new id.
  /// Fails with: kInvalidArgument (the transaction has ended), kCancelled.
  Result<Savepoint> savepoint();
  /// Undoes all that this transaction has written since: rows are again what they were, under the
  /// ids that they had then, and others may write what was written here only since then. The
  /// savepoint stays, later ones are gone. What was read since counts as read: a serializable
  /// transaction may have decided by it what to do next, so its commit answers for that, too.
  /// Takes as long as what it undoes, and no flush or fence; new values stay in dictionaries, as
  /// after an abort. Rows that were read before stay valid, unless they are among what is undone.
  /// Fails with: kInvalidArgument (the savepoint is another transaction's, or gone; or called from
  /// within a visitor), kCancelled. Then nothing is undone.
  Status rollback_to(Savepoint savepoint);
  /// Forgets the savepoint and all later ones; what was done since belongs to the savepoint before,
  /// or to the transaction. Need not be called. Fails with: as rollback_to.
  Status release(Savepoint savepoint);

  /// Makes all writes durable, then visible; ok means both. Two fences up to 64 written rows (an
  /// update writes two), a third above, more only for new space; none when nothing was written.
  /// What durable means is Statistics::guarantee. Ends the transaction, also when it fails: then
  /// nothing took effect. A serializable one reads again what it has read, which takes as long;
  /// whoever has a later snapshot and meets a row that it wrote waits for that.
  /// Fails with: kOutOfSpace (the list of what it wrote does not fit the pool), kConflict (it is
  /// serializable, and what it read has changed since; or, naming the foreign key, somebody else
  /// has committed what does not go with what it wrote), kCancelled (a call before had failed with
  /// that).
  Status commit();

  /// Ends the transaction without effect. Costs no fence. Safe to call on an ended one.
  void abort() noexcept;

  /// Ends the transaction that long from now, if it is still open then: as if it were cancelled
  /// (Database::cancel). The latest call counts; 0: no limit. While there is one, each call reads
  /// the clock. One that makes no call is not ended by it (Database::end_abandoned).
  /// Fails with: kInvalidArgument (below 0, more than a year, or the transaction has ended),
  /// kCancelled.
  Status set_time_limit(std::chrono::milliseconds limit);

  /// By which others name it: Database::cancel, transactions. Default when it has ended.
  TransactionId id() const noexcept;
  bool is_open() const noexcept { return context_ != nullptr; }
  /// The time-stamp whose database this transaction reads, with kReadCommitted its last call; 0
  /// once it has ended.
  std::uint64_t snapshot() const noexcept;
  /// After a commit that wrote: its commit time-stamp; 0 before, and for one that wrote nothing.
  std::uint64_t commit_timestamp() const noexcept { return commit_timestamp_; }

 private:
  friend class engine::DatabaseCore;
  friend struct engine::TransactionAccess;
  bool is_usable() const noexcept;
  Status unusable() const;
  template <typename Given>
  Result<RowId> insert_row(TableId table, std::span<const Given> row);
  Result<engine::Table*> table_to_write(KeyId key);
  template <typename Change>
  Status change_found(KeyId key, std::span<const Value> values, Change&& change);
  Result<Upserted> insert_or(KeyId key, std::span<const Value> row,
                             std::span<const ColumnValue> changes);
  template <typename Call>
  Status go_through(Call&& call, FunctionRef<bool(const Row&)> visit) const;

  engine::DatabaseCore* database_ = nullptr;
  engine::TransactionContext* context_ = nullptr;
  std::uint64_t commit_timestamp_ = 0;
};

}  // namespace flugs
