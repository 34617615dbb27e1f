#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "engine/database/reclaim_rows.h"
#include "engine/database/transaction_watch.h"
#include "flugs/database.h"
#include "mvcc/transaction_slots.h"
#include "tables/transactions/row_locks.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

class Merger;

/// The transactions of a database: begins them, commits them, undoes them, ends them from other
/// threads, and waits for them. It has one context per slot.
///
/// Invariants:
/// * A transaction that is open has a slot; no other thread uses the slot's context until the
///   transaction has ended (`leave`), except as EndingState allows.
/// * What a transaction did is undone once: by its owner, or by a thread that has claimed it.
/// * Locks go before rows are reclaimed, and reclaiming before the slot.
///
/// It knows tables only through the contexts: the catalogue has the list of tables.
/// Thread-safety: any thread, except creating, `create`, `start` and `connect`.
class TransactionManager final {
 public:
  /// `array_offset` is the word in the pool's root that names the slot array.
  TransactionManager(pmem::Pool& pool, std::uint64_t& array_offset)
      : slots_(pool, array_offset), reclaimer_(slots_, pool.allocator()) {}

  /// Makes the contexts, when the slots are known. `ddl_mutex` and `tables`, by id, are the
  /// catalogue's.
  void start(std::uint32_t slots_max, Mutex& ddl_mutex, const StableArray<Table*>& tables);
  /// Transactions ask the merger now and then to start again, if its thread could not be started.
  void connect(Merger& merger) noexcept { merger_ = &merger; }

  mvcc::TransactionSlots& slots() noexcept { return slots_; }
  const mvcc::TransactionSlots& slots() const noexcept { return slots_; }

  // -------------------------------------------------------------- the owner of a transaction

  /// Fails with kTooManyTransactions.
  Result<TransactionContext*> begin(AccessMode mode, Isolation isolation);
  /// With kReadCommitted, called before a call reads or writes: gives it a snapshot of its own. The
  /// transaction's first snapshot still holds rows back, so that row ids keep their meaning.
  void begin_statement(TransactionContext& context) noexcept;
  /// Prepares the transaction's context for writing. Fails when the transaction may not write.
  Status prepare_write(TransactionContext* context);
  Result<std::uint64_t> commit(TransactionContext& context, const CommitOptions& options);
  void abort(TransactionContext& context) noexcept;
  /// Transaction::rollback_to and release.
  static Status rollback_to(TransactionContext& context, const Savepoint& savepoint) noexcept;
  static Status release(TransactionContext& context, const Savepoint& savepoint) noexcept;
  /// For a transaction that must end (EndingState::is_to_end): undoes it and ends its snapshot,
  /// unless a call of it is still going through rows, in this thread or, as a SharedCall, in
  /// another. Its slot stays taken until abort. The Status, kCancelled, says what happened.
  Status end_as_asked(TransactionContext& context) noexcept;
  /// Whether a transaction that wants to commit must end instead.
  static bool refuses_commit(TransactionContext& context) noexcept;
  static Status set_time_limit(TransactionContext& context, std::chrono::milliseconds limit);
  /// Transaction::lock, for a row that the transaction sees. Fails with kNotFound if a
  /// newer version of the row, or its deletion, has been committed. When it fails, the caller
  /// releases what has been locked.
  Status lock_record(TransactionContext& context, const Table& table, std::uint32_t row,
                     RowLocks::Clock::time_point deadline, const std::stop_token& stop);

  // ----------------------------------------------------------------------------- any thread

  /// How many transactions are open; not the slots that reclaim_dead_rows has.
  std::uint32_t open_count() const noexcept {
    const std::lock_guard guard(reclaim_mutex_);
    return slots_.taken();
  }
  /// Like the functions of Database with these names.
  std::vector<TransactionInfo> open() const;
  /// The transaction that is open in the slot; a default id if there is none.
  TransactionId in_slot(std::uint32_t slot) const noexcept;
  /// The transaction that has locked the record; a default id if there is none.
  TransactionId holder_of(const LockName& name) const;
  Status cancel(TransactionId id) noexcept;
  Status end_abandoned(TransactionId id, std::chrono::milliseconds idle);
  /// Fills in the statistics of transactions.
  void report(Statistics& statistics) const;
  /// Takes all dead rows out of the key indexes that no snapshot sees: a merge can drop them then.
  /// Those of slots with an open transaction stay.
  void reclaim_dead_rows() noexcept;
  /// While it exists, reclaim_dead_rows does nothing; on return of the constructor no call of it is
  /// under way.
  class NoReclaiming {
   public:
    explicit NoReclaiming(TransactionManager& manager) noexcept : manager_(manager) { add(1); }
    ~NoReclaiming() { add(-1); }
    NoReclaiming(const NoReclaiming&) = delete;
    NoReclaiming& operator=(const NoReclaiming&) = delete;

   private:
    void add(int holders) noexcept {
      const std::lock_guard guard(manager_.reclaim_mutex_);
      manager_.reclaim_holders_ += holders;
      FLUGS_CHECK(manager_.reclaim_holders_ >= 0);
    }
    TransactionManager& manager_;
  };
  /// In a forked child: none of them can be used any more.
  void end_in_child() noexcept;
  static constexpr std::chrono::milliseconds kPatience{1000};
  /// Until every transaction has ended that is open now, or has a snapshot below `since`; false
  /// when one is left after `patience`, or when the caller of the call has asked to stop.
  bool wait_for_all(const std::stop_token& stop = {}) noexcept {
    return wait_for_snapshots(slots_.advance(), kPatience, stop);
  }
  bool wait_for_snapshots(std::uint64_t since, std::chrono::milliseconds patience = kPatience,
                          const std::stop_token& stop = {}) noexcept;
  /// The status of a call after a wait that failed: kCancelled if its caller has asked to stop,
  /// else kBusy, with the transaction that has the oldest snapshot. `what`: the object of the call.
  Status waited_too_long(std::string_view what, const std::stop_token& stop = {}) const;

 private:
  bool reads_hold(TransactionContext& context, std::uint64_t at) const;
  static bool references_hold(TransactionContext& context, const mvcc::Visibility& now);
  void undo(TransactionContext& context) noexcept;
  void clear(TransactionContext& context) noexcept;
  void leave(TransactionContext& context) noexcept;
  Status wait_for_writer(TransactionContext& context, const Table& table, std::uint32_t row,
                         RowLocks::Clock::time_point deadline, const std::stop_token& stop);
  void end_claimed(TransactionContext& context) noexcept;
  void end_now(TransactionContext& context) noexcept;
  TransactionContext* context_of(TransactionId id) const noexcept;
  mvcc::Slot* acquire_beside_reclaiming() noexcept;

  mutable mvcc::TransactionSlots slots_;
  RowReclaimer reclaimer_;
  std::vector<std::unique_ptr<TransactionContext>> contexts_;  // by slot
  std::unique_ptr<TransactionWatch> watch_;
  std::unique_ptr<RowLocks> row_locks_;
  std::atomic<std::uint64_t> ended_{0};     // transactions that ended because they were asked to
  mutable std::mutex reclaim_mutex_;        // held while reclaim_dead_rows has a slot
  int reclaim_holders_ = 0;                 // under reclaim_mutex_: of NoReclaiming
  std::atomic<std::uint64_t> reclaims_{0};  // calls of reclaim_dead_rows begun and ended
  Merger* merger_ = nullptr;
};

}  // namespace flugs::engine
