#pragma once

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "flugs/status.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::engine {

/// The cause that ended a transaction before its owner did.
enum class EndedBy : std::uint8_t { kNobody, kMerge, kCancel, kTimeLimit, kAbandoned, kFork };

/// The status of calls in a forked child.
Status forked();

/// Whether the transaction of a slot is open, has to end, and has been ended.
///
/// The owner of the transaction looks in each call whether it has to end (`is_to_end`). Other
/// threads ask it to end, and end it themselves when its owner makes no call (`claim_ending`).
/// docs/concurrency.md, "Ending a transaction from outside", has the order of their stores.
///
/// Invariants:
/// * Before the attention word is set, the reason is stored in a word of its own. The attention
///   word stays set while the transaction has a time limit, and from the request to end until the
///   next transaction begins.
/// * Of all threads that want to end the transaction, exactly one undoes it: the one for which
///   `claim_ending` is true.
/// * The owner alone writes `in_call_` and `visits_`.
///
/// Thread-safety: functions of the owner: the thread whose call it is; all others: any thread.
class EndingState final {
 public:
  static constexpr std::int64_t kNoDeadline = 0;

  /// Once, before the first transaction. `attention` is in the slot's mirror. Transactions with a
  /// snapshot below `asked_to_end` have to end (TransactionSlots::ask_to_end).
  void connect(std::atomic<std::uint32_t>& attention,
               const std::atomic<std::uint64_t>& asked_to_end) noexcept {
    FLUGS_CHECK(attention_ == nullptr);
    attention_ = &attention;
    asked_to_end_ = &asked_to_end;
  }

  // ------------------------------------------------------------------------ for the owner only

  /// Before a transaction begins: nothing is left of the slot's former one.
  void forget_former() noexcept {
    if (wants_attention()) forget_requests();
  }
  /// The transaction is open from here on. Its first snapshot holds rows back until it ends.
  void begin(std::uint64_t id, std::uint64_t snapshot) noexcept {
    FLUGS_DCHECK(id != 0 && current_.load(std::memory_order_relaxed) == 0);
    begun_at_ = snapshot;
    current_.store(id, std::memory_order_release);
  }
  bool is_to_end() const noexcept { return wants_attention() && must_end(); }
  bool wants_attention() const noexcept {
    return __builtin_expect(attention_->load(std::memory_order_relaxed) != 0, 0);
  }
  /// Answers a request for attention: whether the transaction must end.
  bool must_end() const noexcept;
  /// In a forked child: the transaction is the parent's, and nothing may be done with it here.
  bool is_parents() const noexcept {
    return ended_by_.load(std::memory_order_relaxed) == EndedBy::kFork;
  }
  /// Nanoseconds of the steady clock; kNoDeadline: as long as it likes.
  void set_deadline(std::int64_t deadline) noexcept {
    deadline_.store(deadline, std::memory_order_relaxed);
    draw_attention();
  }
  /// A call is under way (Call); returns what to give `leave_call`.
  [[gnu::always_inline]] std::uint32_t enter_call() noexcept {
    const std::uint32_t was_in_call = in_call_.load(std::memory_order_relaxed);
    in_call_.store(1, std::memory_order_relaxed);
    mvcc::light_barrier();  // pairs with TransactionManager::end_abandoned
    return was_in_call;
  }
  // With release: a thread that reads it sees all that the call did.
  void leave_call(std::uint32_t was_in_call) noexcept {
    in_call_.store(was_in_call, std::memory_order_release);
  }
  /// The call that ends the transaction: no other call begins before `leave`.
  void enter_last_call() noexcept {
    in_call_.store(1, std::memory_order_relaxed);
    mvcc::light_barrier();  // pairs with TransactionManager::end_abandoned
  }
  /// The transaction has ended.
  void leave() noexcept {
    current_.store(0, std::memory_order_release);
    in_call_.store(0, std::memory_order_release);
  }
  /// A call is under way in one of several threads that share the transaction (SharedCall).
  void enter_shared() noexcept {
    // Pairs with end_abandoned, and with end_as_asked.
    shared_calls_.fetch_add(1, std::memory_order_seq_cst);
  }
  void leave_shared() noexcept { shared_calls_.fetch_sub(1, std::memory_order_release); }
  /// As is_to_end, for the beginning of a shared call. It does not need the attention word, which
  /// another thread may have cleared to answer a request. A shared call and a thread that ends the
  /// transaction cannot both miss each other.
  bool is_to_end_shared() const noexcept {
    const bool is_asked = ended_by_.load(std::memory_order_seq_cst) != EndedBy::kNobody ||
                          cancelled_.load(std::memory_order_seq_cst) == id();
    return __builtin_expect(is_asked, 0) && must_end();
  }
  /// After `must_end` was true: other threads are in calls, so no thread may end the transaction
  /// yet.
  bool is_in_shared_call() const noexcept {
    return shared_calls_.load(std::memory_order_seq_cst) != 0;
  }
  /// A call is under way that may take long, or that calls the user (Visit).
  void enter_visit() noexcept {
    visits_.store(visits_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  void leave_visit() noexcept {
    FLUGS_DCHECK(is_visited());
    visits_.store(visits_.load(std::memory_order_relaxed) - 1, std::memory_order_release);
  }
  bool is_visited() const noexcept { return visits_.load(std::memory_order_relaxed) != 0; }

  // ----------------------------------------------------------------------------- any thread

  /// The TransactionId of the transaction that is open, else 0.
  std::uint64_t id() const noexcept { return current_.load(std::memory_order_acquire); }
  bool is_in_call() const noexcept {
    return in_call_.load(std::memory_order_acquire) != 0 ||
           shared_calls_.load(std::memory_order_acquire) != 0;
  }
  /// How often the owner has looked why attention was wanted.
  std::uint64_t answers() const noexcept { return answers_.load(std::memory_order_acquire); }
  EndedBy ended_by() const noexcept { return ended_by_.load(std::memory_order_acquire); }
  /// The status of calls in a transaction that was asked to end.
  Status why_ended() const;
  bool is_cancelled(std::uint64_t id) const noexcept {
    return cancelled_.load(std::memory_order_acquire) == id;
  }
  /// Cancels the transaction with this id; the slot's next transaction has another id.
  void cancel(std::uint64_t id) noexcept {
    cancelled_.store(id, std::memory_order_release);
    draw_attention();
  }
  /// The owner answers in its next call.
  void draw_attention() noexcept;
  /// True for one caller, which then alone undoes the transaction's work.
  bool claim_ending() noexcept { return ender_.exchange(1, std::memory_order_acq_rel) == 0; }
  /// Called by the thread that has claimed the ending.
  void note_abandoned() noexcept {
    ended_by_.store(EndedBy::kAbandoned, std::memory_order_release);
  }
  void note_undone() noexcept { is_undone_.store(true, std::memory_order_release); }
  /// The transaction was ended because it was asked to; its slot is still taken.
  bool is_undone() const noexcept { return is_undone_.load(std::memory_order_acquire); }
  /// In a forked child, which has no other threads: for ever.
  void end_in_child() noexcept {
    ended_by_.store(EndedBy::kFork, std::memory_order_relaxed);
    draw_attention();
  }

 private:
  void forget_requests() noexcept;

  const std::atomic<std::uint64_t>* asked_to_end_ = nullptr;
  std::atomic<std::uint32_t>* attention_ = nullptr;
  std::uint64_t begun_at_ = 0;
  std::atomic<std::uint64_t> current_{0};
  std::atomic<std::uint32_t> in_call_{0};
  std::atomic<std::uint32_t> shared_calls_{0};
  std::atomic<std::uint32_t> visits_{0};
  std::atomic<bool> is_undone_{false};
  std::atomic<std::uint32_t> ender_{0};  // not 0: a thread is ending the transaction, or has
  mutable std::atomic<EndedBy> ended_by_{EndedBy::kNobody};
  mutable std::atomic<std::uint64_t> answers_{0};
  std::atomic<std::uint64_t> cancelled_{0};  // a TransactionId
  std::atomic<std::int64_t> deadline_{kNoDeadline};
};

}  // namespace flugs::engine
