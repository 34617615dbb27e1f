#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "base/stable_array.h"
#include "columns/unflushed.h"
#include "flugs/transaction.h"
#include "mvcc/transaction_slots.h"
#include "mvcc/visibility.h"
#include "tables/rows/row_store.h"
#include "tables/transactions/auto_increment.h"
#include "tables/transactions/ending_state.h"
#include "tables/transactions/read_set.h"
#include "tables/transactions/row_locks.h"
#include "tables/transactions/savepoints.h"
#include "tables/transactions/statement_scratch.h"
#include "tables/transactions/write_list.h"

namespace flugs::engine {

class Table;

/// A counter that one thread writes and any reads.
class OwnedCounter {
 public:
  void add() noexcept { value_.store(get() + 1, std::memory_order_relaxed); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// What was done to a key index on behalf of a transaction, to be undone in reverse order.
struct IndexChange {
  Table* table;
  std::uint32_t row;
  std::uint32_t replaced;  ///< kNoRow: `row` was inserted; else it took this row's place
  std::uint16_t key;
};

/// A row nobody will read again once every snapshot has passed `since`.
struct DeadRow {
  DeadRow(Table* of, std::uint64_t since_timestamp, std::uint64_t fence_count, std::uint32_t row_id,
          std::uint16_t keys) noexcept
      : table(of), since(since_timestamp), fences(fence_count), row(row_id), changed_keys(keys) {}

  Table* table;
  std::uint64_t since;
  std::uint64_t fences;  ///< as many commits of the slot make its removal durable; 0: no need
  std::uint32_t row;
  std::uint16_t changed_keys;  ///< bit per key whose index still names the row
  /// Bit per key, of the first few, whose hash of the row is kept: what it is of may be out of the
  /// caches when the row leaves the index.
  std::uint16_t known_hashes = 0;
  static constexpr std::size_t kHashesKept = 2;
  std::array<std::uint32_t, kHashesKept> upper_halves{};  ///< all that indexes go by

  void keep_hash(std::size_t key, std::uint64_t hash) noexcept {
    upper_halves[key] = static_cast<std::uint32_t>(hash >> 32);
    known_hashes |= static_cast<std::uint16_t>(1u << key);
  }
  std::optional<std::uint64_t> hash_of_key(std::size_t key) const noexcept {
    if ((known_hashes & (1u << key)) == 0) return {};
    return std::uint64_t{upper_halves[key]} << 32;
  }
};

/// Dead rows in the order in which they died. A ring that keeps its memory: a std::deque would
/// allocate a block for every twelve rows that pass through it.
class DeadRowQueue {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  DeadRow& operator[](std::size_t i) noexcept { return rows_[(first_ + i) & (rows_.size() - 1)]; }
  DeadRow& front() noexcept { return (*this)[0]; }
  void reserve(std::size_t rows) {
    while (rows_.size() < rows) grow();
  }
  void push(const DeadRow& row) { push(row, row.since); }
  /// `since` instead of its own: to store it there first, and load both words at once, is to wait
  /// for each store before it.
  void push(const DeadRow& row, std::uint64_t since) {
    if (size_ == rows_.size()) grow();
    ++size_;
    DeadRow& last = (*this)[size_ - 1];
    last = row;
    last.since = since;
  }
  void pop() noexcept {
    first_ = (first_ + 1) & (rows_.size() - 1);
    --size_;
    // After a long snapshot, or a transaction that deleted much.
    if (size_ == 0 && rows_.size() > kRowsKept) rows_ = {};
  }

 private:
  static constexpr std::size_t kRowsAtFirst = 64;
  static constexpr std::size_t kRowsKept = std::size_t{1} << 16;

  void grow() {
    std::vector<DeadRow> larger(rows_.empty() ? kRowsAtFirst : rows_.size() * 2,
                                DeadRow(nullptr, 0, 0, 0, 0));
    for (std::size_t i = 0; i < size_; ++i) larger[i] = (*this)[i];
    rows_.swap(larger);
    first_ = 0;
  }

  std::vector<DeadRow> rows_;  // a power of two of them
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

/// What a slot keeps per table between transactions: rows that it may use next.
struct LocalRows {
  Table* table = nullptr;
  RowRange range;
  std::vector<std::uint32_t> free;
  std::uint64_t checked_at = 0;  ///< RowStore::last_emptied_at when these were last gone through
  ValueBlock numbers;
};

/// Everything one transaction needs besides its slot; reused by the next one, so that a transaction
/// allocates nothing once its vectors have grown. One thread at a time, and lines of its own.
class alignas(128) TransactionContext {
 public:
  mvcc::Slot* slot = nullptr;
  mvcc::TransactionSlots* slots = nullptr;
  Mutex* ddl_mutex = nullptr;  // of the database; only tried
  mvcc::Visibility visibility;
  EndingState ending;
  AccessMode mode = AccessMode::kReadOnly;
  Isolation isolation = Isolation::kSnapshot;
  bool is_writing = false;
  bool asks_references = false;  ///< commit asks again what foreign keys say
  bool deletes_in_main = false;  ///< has deleted a row of main, or had
  Status refusal;                ///< why it refused, when it has to be said
  std::uint64_t opened = 0;      ///< transactions so far

  WriteList writes;
  std::vector<IndexChange> index_changes;
  columns::Unflushed unflushed;
  Savepoints savepoints;
  RowLocks* row_locks = nullptr;  // the database's
  std::vector<LockName> locks;    ///< in row_locks, in the order in which they were taken

  StatementScratch scratch;

  // Kept from transaction to transaction.
  std::vector<LocalRows> local_rows;
  std::vector<DeadRow> dying;          // rows deleted by the transaction that runs
  DeadRowQueue dead;                   // committed; still in indexes
  DeadRowQueue unreachable;            // out of every index; reusable when no reader can hold them
  std::uint64_t oldest_snapshot = 0;   // as of some commits ago
  std::uint64_t oldest_looked_at = 0;  // when that was, a time-stamp
  std::uint64_t endings = 0;           // of transactions that wrote, or tried to
  std::uint64_t oldest_snapshot_endings = 0;  // as many when it was found out
  std::size_t dead_rows_after_oldest = 0;     // size of `dead` then
  bool wants_rows = false;                    // the pool is full
  std::uint64_t rows_wanted_seen = 0;         // how often that was so when all was collected
  OwnedCounter commits;
  OwnedCounter aborts;
  OwnedCounter conflicts;

  ReadSet reads;  ///< of a serializable transaction that may write

  // A TransactionId: how many before it, then isolation, mode and slot.
  static constexpr int kIdSlotBits = 12;
  std::uint64_t next_id() noexcept {
    return (++opened << (kIdSlotBits + 3)) |
           (static_cast<std::uint64_t>(isolation) << (kIdSlotBits + 1)) |
           (static_cast<std::uint64_t>(mode) << kIdSlotBits) | slot->index();
  }
  static constexpr std::uint64_t slot_in(std::uint64_t id) noexcept {
    return id & ((1u << kIdSlotBits) - 1);
  }
  static constexpr AccessMode mode_in(std::uint64_t id) noexcept {
    return static_cast<AccessMode>((id >> kIdSlotBits) & 1);
  }
  static constexpr Isolation isolation_in(std::uint64_t id) noexcept {
    return static_cast<Isolation>((id >> (kIdSlotBits + 1)) & 3);
  }
  /// Whether each call reads what is committed by then.
  bool reads_anew() const noexcept { return isolation == Isolation::kReadCommitted; }
  /// Whether what is read goes into `reads`.
  bool notes_reads() const noexcept {
    return isolation == Isolation::kSerializable && mode == AccessMode::kReadWrite;
  }

  TransactionMark mark() const noexcept {
    return {writes.size(), index_changes.size(), dying.size(), locks.size()};
  }
  /// Undoes what the transaction has done since, of a statement or behind a savepoint.
  void undo_since(const TransactionMark& mark) noexcept;
  /// Whether this row, which the transaction inserted, may be changed where it stands: no savepoint
  /// asks for it as it is. May say no of a row that it wrote long ago.
  bool may_change_in_place(std::uint32_t table, std::uint32_t row) const noexcept {
    return savepoints.empty() || writes.has_inserted_since(savepoints.newest().writes, table, row);
  }
  /// The table of a row that was written.
  Table* table_of(std::uint32_t id) const noexcept {
    return __atomic_load_n(&(*tables)[id], __ATOMIC_ACQUIRE);
  }
  const StableArray<Table*>* tables = nullptr;  ///< by id

  /// To be called with each write: no transaction has all of its work at its end.
  void add_write(const mvcc::Write& write) {
    writes.add(write);
    if (__builtin_expect(writes.is_flush_due(), 0)) work_ahead();
  }

  LocalRows& local_rows_of(Table& table) {
    for (LocalRows& local : local_rows)
      if (local.table == &table) return local;
    return add_local_rows(table);
  }

 private:
  LocalRows& add_local_rows(Table& table);
  void work_ahead();
};

/// A call of the transaction, if there is one: while it lives, no other thread ends the
/// transaction. It must be made before the look whether the transaction has to end: of the call and
/// a thread that wants to end the transaction, at least one sees the other.
class Call final {
 public:
  explicit Call(TransactionContext* context) noexcept : context_(context) {
    if (context != nullptr) was_in_call_ = context->ending.enter_call();
  }
  ~Call() {
    if (context_ != nullptr) context_->ending.leave_call(was_in_call_);
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

 private:
  TransactionContext* context_;
  std::uint32_t was_in_call_ = 0;  // by a call that calls this one
};

/// While it lives, neither a nested call nor another thread ends the transaction.
class Visit final {
 public:
  explicit Visit(TransactionContext& context) noexcept : ending_(context.ending) {
    ending_.enter_visit();
  }
  ~Visit() { ending_.leave_visit(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  EndingState& ending_;
};

}  // namespace flugs::engine
