#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "columns/cells/unflushed.h"
#include "tables/transactions/conflict_note.h"
#include "tables/transactions/dead_rows.h"
#include "tables/transactions/ending_state.h"
#include "tables/transactions/found_row.h"
#include "tables/transactions/held_locks.h"
#include "tables/transactions/open_walks.h"
#include "tables/transactions/read_set.h"
#include "tables/transactions/savepoints.h"
#include "tables/transactions/slot_rows.h"
#include "tables/transactions/statement_scratch.h"
#include "tables/transactions/write_list.h"

namespace flugs {

class Mutex;
template <typename T>
class StableArray;

namespace engine {

class Table;

/// A counter that one thread writes and any reads.
class OwnedCounter final {
 public:
  void add() noexcept { value_.store(get() + 1, std::memory_order_relaxed); }
  std::uint64_t get() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

/// A change to a key index on behalf of a transaction; changes are undone in reverse order.
struct IndexChange {
  Table* table;
  std::uint32_t row;
  std::uint32_t replaced;  ///< kNoRow: `row` was inserted; else `row` replaced this row
  std::uint16_t key;
};

/// Everything that the transaction of one slot needs besides the slot. The slot's next transaction
/// uses it again, so that a transaction allocates nothing once its vectors have grown.
///
/// Invariant: when no transaction is open, `writes`, `index_changes`, `unflushed`, `savepoints`,
/// `locks`, `reads` and `walks` are empty, and so are the dying rows of `dead_rows`, and its texts
/// but for those that wait; `statement_writes` is 0.
/// Thread-safety: one thread at a time; other threads may call what EndingState lets them call, and
/// read the counters. On cache lines of its own.
class alignas(128) TransactionContext final {
 public:
  mvcc::Slot* slot = nullptr;
  mvcc::TransactionSlots* slots = nullptr;
  Mutex* ddl_mutex = nullptr;                   ///< of the database; only tried, never waited for
  const StableArray<Table*>* tables = nullptr;  ///< by id
  mvcc::Visibility visibility;
  EndingState ending;
  AccessMode mode = AccessMode::kReadOnly;
  Isolation isolation = Isolation::kSnapshot;
  bool is_writing = false;
  bool asks_references = false;  ///< commit checks foreign keys again
  bool deletes_in_main = false;  ///< has deleted a row of main, even if that was undone
  Status refusal;                ///< why the commit was refused, if the caller must be told
  ConflictNote conflict;         ///< of this transaction, or a former one
  std::uint64_t opened = 0;      ///< transactions so far in this slot

  WriteList writes;
  std::vector<IndexChange> index_changes;
  columns::Unflushed unflushed;
  Savepoints savepoints;
  std::size_t statement_writes = 0;  ///< number of writes before the statement (ManyRows), else 0
  HeldLocks locks;

  ReadSet reads;  ///< of a serializable transaction that may write
  OpenWalks walks;
  FoundRow found;

  // Kept for the next transactions:
  StatementScratch scratch;
  SlotRows local_rows;
  DeadRows dead_rows;
  OwnedCounter commits;
  OwnedCounter aborts;
  OwnedCounter conflicts;

  // A TransactionId: number of earlier transactions, then isolation, mode and slot.
  static constexpr int kIdSlotBits = 12;
  static_assert(mvcc::kSlotsMax <= 1u << kIdSlotBits);
  static_assert(static_cast<unsigned>(Isolation::kReadCommitted) <= 3);
  static_assert(static_cast<unsigned>(AccessMode::kReadOnlyDurable) <= 3);
  std::uint64_t next_id() noexcept {
    return (++opened << (kIdSlotBits + 4)) |
           (static_cast<std::uint64_t>(isolation) << (kIdSlotBits + 2)) |
           (static_cast<std::uint64_t>(mode) << kIdSlotBits) | slot->index();
  }
  static constexpr std::uint64_t slot_in(std::uint64_t id) noexcept {
    return id & ((1u << kIdSlotBits) - 1);
  }
  static constexpr AccessMode mode_in(std::uint64_t id) noexcept {
    return static_cast<AccessMode>((id >> kIdSlotBits) & 3);
  }
  static constexpr Isolation isolation_in(std::uint64_t id) noexcept {
    return static_cast<Isolation>((id >> (kIdSlotBits + 2)) & 3);
  }
  /// Whether each call has a snapshot of its own.
  bool reads_anew() const noexcept { return isolation == Isolation::kReadCommitted; }
  /// Whether reads are noted in `reads`.
  bool notes_reads() const noexcept {
    return isolation == Isolation::kSerializable && mode == AccessMode::kReadWrite;
  }

  /// A call fails with kConflict because of this stamp, or because of a lock.
  void note_conflict(ConflictReason reason, std::uint32_t table, std::uint32_t row,
                     mvcc::Stamp other, std::uint16_t key = 0) noexcept {
    conflicts.add();
    conflict = {opened, other, table, row, key, reason};
  }

  TransactionMark mark() const noexcept {
    return {writes.size(), index_changes.size(),        dead_rows.dying().size(),
            locks.size(),  dead_rows.texts().written(), dead_rows.texts().left()};
  }
  /// Undoes everything since the mark: of a statement, or behind a savepoint.
  void undo_since(const TransactionMark& mark) noexcept;
  /// Gives back the long texts that the transaction has written, but for the first `count`. No row
  /// has them any more that the transaction may commit.
  void take_back_texts(std::size_t count) noexcept;
  /// Whether this row, which the transaction inserted, may be changed in place: no savepoint, no
  /// walk and no undo of the statement needs its present state. May say no for a row that was
  /// written long ago.
  bool may_change_in_place(std::uint32_t table, std::uint32_t row) const noexcept {
    if (!walks.empty()) return false;
    if (savepoints.empty() && statement_writes == 0) return true;
    const std::size_t kept = savepoints.empty() ? 0 : savepoints.newest().writes;
    return writes.has_inserted_since(std::max(kept, statement_writes), table, row);
  }
  /// The table with that id, for a row that was written.
  Table* table_of(std::uint32_t id) const noexcept;

  /// Called for each write. Some work is done ahead, so that commit does not have to do all of it.
  void add_write(const mvcc::Write& write) {
    writes.add(write);
    if (__builtin_expect(writes.is_flush_due(), 0)) work_ahead();
  }

 private:
  void work_ahead();
};

/// Guard for a statement that changes rows one by one and may fail between two of them. While it
/// exists, rows from before it are not changed in place, as behind a savepoint: undo() finds every
/// change in the lists.
class ManyRows final {
 public:
  explicit ManyRows(TransactionContext& context) noexcept
      : context_(context), outer_(context.statement_writes), before_(context.mark()) {
    FLUGS_DCHECK(outer_ <= before_.writes);
    context.statement_writes = before_.writes;
  }
  ~ManyRows() { context_.statement_writes = outer_; }
  ManyRows(const ManyRows&) = delete;
  ManyRows& operator=(const ManyRows&) = delete;

  const TransactionMark& before() const noexcept { return before_; }
  /// Undoes what the statement has done so far.
  void undo() noexcept { context_.undo_since(before_); }

 private:
  TransactionContext& context_;
  const std::size_t outer_;  // of the statement around this one
  const TransactionMark before_;
};

/// Guard for a call of the transaction, if there is one: while it exists, no other thread ends the
/// transaction. Make it before checking whether the transaction must end: of the call and a thread
/// that wants to end the transaction, at least one sees the other.
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
  std::uint32_t was_in_call_ = 0;  // true when another call made this one
};

/// Guard of a call in one of several threads that read at the same time. `transactions` and
/// end_abandoned see it as they see a Call. While it exists, the owner's thread does not end the
/// transaction in a call, if the shared call reads rows only after `must_end` was false.
class SharedCall final {
 public:
  explicit SharedCall(TransactionContext& context) noexcept : ending_(context.ending) {
    ending_.enter_shared();
  }
  ~SharedCall() { ending_.leave_shared(); }
  bool must_end() const noexcept { return ending_.is_to_end_shared(); }
  SharedCall(const SharedCall&) = delete;
  SharedCall& operator=(const SharedCall&) = delete;

 private:
  EndingState& ending_;
};

/// Guard: while it exists, neither a nested call nor another thread may end the transaction.
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

}  // namespace engine

}  // namespace flugs
