#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "mvcc/asymmetric_barrier.h"
#include "mvcc/clock.h"
#include "mvcc/durable_time.h"
#include "mvcc/intent_blocks.h"
#include "mvcc/stamps.h"
#include "mvcc/visibility.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::mvcc {

/// Guard: while it exists, this thread takes its slots as another thread would. So work on other
/// databases does not change which slot the thread gets back in its own. Transactions begun
/// meanwhile must end before. The crash-state explorer needs it, which opens databases while it
/// works on one.
///
/// The first slot of a thread follows from `number`, not from the threads that existed before.
class OtherThread {
 public:
  explicit OtherThread(std::uint32_t number);
  ~OtherThread();
  OtherThread(const OtherThread&) = delete;
  OtherThread& operator=(const OtherThread&) = delete;

 private:
  SlotClaim* own_;
  std::uint32_t number_;  // of the claim, before
};

/// A slot in the hands of one transaction: all data that only its owner touches. On lines of its
/// own, because the owner of the next slot writes just as often.
class alignas(128) Slot {
 public:
  std::uint32_t index() const noexcept { return index_; }
  Stamp tag() const noexcept { return make_tag(index_, generation_); }
  pmem::Persister& persister() noexcept { return *persister_; }
  /// The entry's line becomes durable with the first fence of the slot's next commit.
  void flush_later(VersionLayout& version) { unflushed_stamps_.push_back(&version); }

 private:
  friend class TransactionSlots;
  friend class Commit;
  std::uint32_t index_ = 0;
  std::uint64_t generation_ = 0;        // of the running transaction, or of the next one
  std::uint64_t generation_limit_ = 0;  // generations below it are durably taken; 0: not read yet
  std::unique_ptr<pmem::Persister> persister_;
  SlotClaim* claim_ = nullptr;  // names the slot while a transaction has it; null: pinned
  // Rows that the last transaction stamped and that have not been flushed yet.
  std::vector<VersionLayout*> unflushed_stamps_;
  bool has_many_intents_ = false;    // the last committed transaction left them in its half
  IntentBlocks blocks_[2];           // of the halves
  std::uint64_t begun_at_ = 0;       // the last snapshot, of the processors' clock
  std::uint64_t durable_at_ = 0;     // the last durable snapshot
  std::uint32_t pending_group_ = 0;  // for DurableTime
};

/// The persistent slot array with its DRAM mirrors, the clock, and the registry of snapshots.
/// Thread-safety: any thread, except load.
/// Source: SOFORT (DaMoN 2014), section 2 (TRX array).
class TransactionSlots {
 public:
  /// `array_offset` is the word in the application root that names the slot array.
  TransactionSlots(pmem::Pool& pool, std::uint64_t& array_offset);
  ~TransactionSlots();

  /// A new pool: makes the array. Durable on return. Fails with kOutOfSpace.
  Status create(std::uint32_t slot_count);

  struct LoadCounts {
    std::uint64_t completed = 0;  ///< transactions with a stamp that had to be finished
    std::uint64_t undone = 0;     ///< transactions that had begun to commit and left a tag behind
    std::uint64_t intents = 0;    ///< intents examined
  };
  /// Opening: claims the array and resolves transactions that were in flight. `locate` gives the
  /// MVCC entry of a row, or null when the table or row does not exist. Idempotent. Fails with
  /// kCorrupt.
  Status load(FunctionRef<VersionLayout*(std::uint32_t table, std::uint32_t row)> locate,
              LoadCounts& counts);
  /// After load, before `start`: removes the intents that this opening has resolved, so that no
  /// later opening examines them. Audits must not call it, because they read the intents.
  void forget_all_intents();
  /// After load, for audits: calls `visit(damaged, words)` for each commit record or list of
  /// intents that differs from what a commit leaves. A crash in the middle of a commit leaves a
  /// torn record.
  void audit(FunctionRef<void(bool damaged, const std::string& words)> visit);
  /// After load, for audits: whether some transaction of this pool can have left the tag behind.
  bool is_known_tag(Stamp tag) noexcept {
    return slot_of(tag) < array_slots_ && generation_of(tag) < generation_limit(slot_of(tag));
  }
  std::uint32_t slots_in_pool() const noexcept { return array_slots_; }
  /// After load, when space can be allocated: makes the array larger if it has fewer slots.
  Status grow(std::uint32_t slot_count);
  /// Uses the first `slot_count` slots from here on.
  void start(std::uint32_t slot_count);

  /// Takes a slot for a transaction; null when all are taken. A thread gets its last slot back
  /// without a locked instruction, which would wait for the flushes of its former transaction.
  Slot* acquire() noexcept;
  void release(Slot& slot) noexcept;
  /// Takes this very slot, for work on what its transactions left behind; null: a transaction has
  /// it. Its thread takes another one meanwhile.
  Slot* acquire_idle(std::uint32_t index) noexcept;

  /// Takes the snapshot of a new transaction and registers it.
  std::uint64_t begin_snapshot(Slot& slot) noexcept {
    FLUGS_DCHECK(slot.index_ < slot_count_);
    // Register first, then read the clock again behind the barrier: a thread that computes the
    // oldest snapshot and misses the registration has read the clock before (pairs with
    // oldest_snapshot). Release, so that a thread that reads the word is behind all that the slot's
    // former transaction did.
    std::atomic<std::uint64_t>& registered = mirrors_[slot.index_].snapshot;
    note_write(SharedWord::kSnapshot, &registered);
    if (__builtin_expect(clock_.is_of_processors(), 0)) {
      // Reading the time is expensive, so register the slot's earlier time until it is read.
      registered.store(slot.begun_at_, std::memory_order_release);
      light_barrier();
      slot.begun_at_ = clock_.read_after(slot.begun_at_);
      registered.store(slot.begun_at_, std::memory_order_release);
      return slot.begun_at_;
    }
    registered.store(clock_.read(), std::memory_order_release);
    light_barrier();
    return clock_.read();
  }
  /// The same for a transaction that only reads and must see nothing that a power cut could take
  /// back. Does not wait; goes through all slots. Without a journal the same as begin_snapshot.
  std::uint64_t begin_durable_snapshot(Slot& slot) noexcept;
  /// A later snapshot of that kind for the same transaction, which stays registered as it is.
  std::uint64_t durable_now(Slot& slot) noexcept;
  /// Makes durable what keeps durable snapshots below `since`, if the device can do it. Call it
  /// while oldest_snapshot is below `since`; may wait for the device.
  void catch_up(std::uint64_t since) noexcept;
  /// From here on time-stamps come from the processors (Clock). Call it before create and load.
  void use_processor_clock() noexcept { clock_.use_processors(); }
  /// Returns when the time-stamp is in the past: every snapshot taken from then on covers it, and
  /// every transaction with a time-stamp at or below it shows that it commits. A transaction that
  /// commits at `timestamp` calls it before it looks at what others did.
  void pass(std::uint64_t timestamp) const noexcept {
    clock_.pass(timestamp);
    clock_.read();
  }
  /// Publishes a transaction that will write as active; its generation is new and durable.
  void begin_writing(Slot& slot);

  /// Makes durable what the slot's next commit would make durable: stamps, and entries given to
  /// flush_later.
  void persist_stamps(Slot& slot) noexcept;

  std::span<SlotMirror> mirrors() noexcept { return {mirrors_.get(), slot_count_}; }
  /// No open or future transaction has a snapshot below it. Costs a few microseconds.
  std::uint64_t oldest_snapshot() noexcept;
  /// Registers a snapshot that belongs to no transaction, and returns it. There is one at a time: a
  /// second caller waits (SnapshotHold).
  std::uint64_t begin_hold() noexcept;
  void end_hold() noexcept;
  /// The same as oldest_snapshot, or the result of another thread if it is recent. A look
  /// interrupts all processors and goes through all slots, and as many threads may look as there
  /// are slots. Recent means: since `looked_at`, this thread's last look, and not long ago compared
  /// with it. Sets `looked_at`.
  std::uint64_t shared_oldest_snapshot(std::uint64_t& looked_at) noexcept;
  /// The transaction with the oldest snapshot, for people; it may have ended meanwhile. Without any
  /// transaction, the clock and slot 0.
  struct Oldest {
    std::uint64_t snapshot;
    std::uint32_t slot;
  };
  Oldest oldest_transaction() const noexcept;
  /// A time-stamp above every snapshot taken so far and not above any taken from now on.
  std::uint64_t advance() noexcept { return clock_.advance(); }
  /// Asks transactions with a snapshot below `timestamp` to end; each ends when its owner looks.
  void ask_to_end(std::uint64_t timestamp) noexcept;
  /// The highest time-stamp that was asked for.
  const std::atomic<std::uint64_t>& asked_to_end() const noexcept { return asked_to_end_; }
  /// Number of transactions with a snapshot below `timestamp`; some may have ended by now.
  std::uint32_t open_before(std::uint64_t timestamp) const noexcept;
  /// Ends a transaction's claim on its snapshot; the slot stays taken.
  void end_snapshot(Slot& slot) noexcept {
    mirrors_[slot.index_].snapshot.store(SlotMirror::kNoSnapshot, std::memory_order_release);
  }
  /// While at least one caller keeps the opening, no entry that existed at opening leaves the
  /// indexes, and nothing else is freed: garbage collection uses oldest_collected. Other waits are
  /// not affected. The first call must be before the first write.
  void keep_opening() noexcept { opening_kept_.fetch_add(1, std::memory_order_relaxed); }
  void release_opening() noexcept {
    const std::uint32_t before = opening_kept_.fetch_sub(1, std::memory_order_release);
    FLUGS_CHECK(before != 0);
  }
  std::uint64_t oldest_collected(std::uint64_t oldest) const noexcept {
    const bool is_kept = opening_kept_.load(std::memory_order_acquire) != 0;
    return is_kept ? std::min(oldest, opened_at_) : oldest;
  }
  /// The clock's time when the database was opened.
  std::uint64_t opened_at() const noexcept { return opened_at_; }
  std::uint64_t now() const noexcept { return clock_.read(); }
  /// Roughly how far the clock moves in that many commits.
  std::uint64_t time_of(std::uint64_t commits) const noexcept {
    return clock_.is_of_processors() ? commits * Clock::kTicksPerCommit : commits;
  }
  /// At or above every snapshot taken so far.
  std::uint64_t latest_snapshot() const noexcept { return clock_.latest(); }
  std::uint32_t slot_count() const noexcept { return slot_count_; }
  std::uint32_t taken() const noexcept;
  /// The upper bound for every stamp in the pool.
  std::uint64_t timestamp_limit() const noexcept { return now(); }
  std::uint64_t bytes_in_pool() const noexcept;

 private:
  friend class Commit;
  static std::uint64_t array_bytes(std::uint64_t slot_count) noexcept;
  Result<std::uint64_t> make_array(std::uint64_t slot_count, pmem::Persister& persister);
  SlotArrayLayout& array() noexcept;
  std::uint64_t& generation_limit(std::uint32_t slot) noexcept;
  TransactionSlotLayout& slot_layout(std::uint32_t slot) noexcept;
  Status check_array() const;
  Status claim_blocks(std::uint32_t slot, std::uint32_t half);
  void persist_records(pmem::Persister& persister);
  /// Stores step 1 of forget_intents for one half, if its block holds intents; the caller fences.
  static void forget_intents(SlotHalfLayout& half, pmem::Persister& persister) noexcept;
  /// The same for both halves.
  void forget_intents(std::uint32_t slot, pmem::Persister& persister) noexcept;
  void resolve(std::uint32_t slot, const SlotHalfLayout& half, const IntentBlocks& blocks,
               FunctionRef<VersionLayout*(std::uint32_t, std::uint32_t)> locate,
               pmem::Persister& persister, LoadCounts& counts);
  /// The value by which SlotClaim::in_use names a slot.
  std::uint64_t name_of(std::uint32_t index) const noexcept { return (id_ << 16) | (index + 1); }
  static_assert(kSlotsMax < (1u << 16));
  Slot* take_any(std::uint32_t first, SlotClaim* home_of) noexcept;
  Slot& pinned(std::uint32_t index) noexcept;
  bool pin_free(std::uint32_t index) noexcept;
  bool pin_idle(std::uint32_t index) noexcept;

  pmem::Pool& pool_;
  std::uint64_t id_;  // unlike any other TransactionSlots of this process
  std::uint64_t& root_;
  std::uint32_t array_slots_ = 0;  // in the pool
  std::uint32_t slot_count_ = 0;   // in use
  std::uint64_t opened_at_ = 0;
  std::uint64_t generation_floor_ = 0;
  std::vector<IntentBlocks> blocks_;  // found by load, two per slot; then the slots have them
  std::unique_ptr<SlotMirror[]> mirrors_;
  std::vector<Slot> slots_;
  std::atomic<std::uint64_t> asked_to_end_{0};
  Mutex hold_mutex_;  // from begin_hold to end_hold
  std::atomic<std::uint32_t> opening_kept_{0};
  std::atomic<std::uint64_t> held_snapshot_{SlotMirror::kNoSnapshot};
  // The last result of shared_oldest_snapshot, and a lower bound of its time. Written once for
  // thousands of transactions, whatever the number of slots.
  alignas(64) std::atomic<std::uint64_t> found_oldest_{0};
  std::atomic<std::uint64_t> found_at_{0};
  Clock clock_;
  DurableTime durable_time_;
};

/// Guard: while it exists, nothing is freed that its snapshot sees. For internal work of the
/// database, which is no transaction: it takes no slot and is not counted.
/// Thread-safety: any thread.
class SnapshotHold {
 public:
  explicit SnapshotHold(TransactionSlots& slots) noexcept
      : slots_(slots), snapshot_(slots.begin_hold()) {}
  ~SnapshotHold() { slots_.end_hold(); }
  SnapshotHold(const SnapshotHold&) = delete;
  SnapshotHold& operator=(const SnapshotHold&) = delete;

  Visibility visibility() const noexcept { return {slots_.mirrors(), snapshot_, kNoStamp}; }

 private:
  TransactionSlots& slots_;
  const std::uint64_t snapshot_;
};

}  // namespace flugs::mvcc
