// How the transaction manager ends a transaction from another thread, and by its time limit.

#include <fmt/format.h>

#include <mutex>
#include <thread>

#include "base/check.h"
#include "engine/database/transaction_manager.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::engine {

namespace {

Status no_transaction() { return Status(StatusCode::kNotFound, "no open transaction has this id"); }

}  // namespace

std::vector<TransactionInfo> TransactionManager::open() const {
  return watch_->look(contexts_, slots_);
}

TransactionContext* TransactionManager::context_of(TransactionId id) const noexcept {
  const std::uint64_t slot = TransactionContext::slot_in(id.value());
  if (id == TransactionId() || slot >= contexts_.size()) return nullptr;
  TransactionContext* context = contexts_[slot].get();
  return context->ending.id() == id.value() ? context : nullptr;
}

TransactionId TransactionManager::in_slot(std::uint32_t slot) const noexcept {
  return slot < contexts_.size() ? TransactionId(contexts_[slot]->ending.id()) : TransactionId();
}

TransactionId TransactionManager::holder_of(const LockName& name) const {
  const std::optional<std::uint32_t> slot = row_locks_->holder_of(name);
  return slot ? in_slot(*slot) : TransactionId();
}

Status TransactionManager::cancel(TransactionId id) noexcept {
  TransactionContext* context = context_of(id);
  if (context == nullptr) return no_transaction();
  context->ending.cancel(id.value());
  return {};
}

// A call that began after the transaction was asked to answer would have answered. A call marks
// that it is under way and then checks whether the transaction must end; here the order is the
// other way round. So a call under way is seen here, and a later call sees that the transaction
// must end, and that another thread is ending it.
Status TransactionManager::end_abandoned(TransactionId id, std::chrono::milliseconds idle) {
  if (idle < std::chrono::milliseconds(10))
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("idle is {} ms, allowed are 10 ms and more", idle.count()));
  TransactionContext* context = context_of(id);
  if (context == nullptr) return no_transaction();
  for (const TransactionInfo& info : open()) {
    if (!(info.id == id) || info.is_ended) continue;
    if (info.is_in_call) return Status(StatusCode::kBusy, "a call of the transaction is running");
    if (info.idle >= idle) continue;
    return Status(
        StatusCode::kBusy,
        fmt::format("the transaction has made no call for at least {} ms, required are {} ms",
                    info.idle.count(), idle.count()));
  }
  const std::uint64_t answers = context->ending.answers();
  if (Status s = cancel(id); !s.ok()) return s;
  mvcc::heavy_barrier();
  if (context->ending.is_in_call())
    return Status(StatusCode::kBusy,
                  "a call of the transaction is running; the transaction will end after it");
  if (context->ending.answers() != answers || context_of(id) == nullptr)
    return Status(StatusCode::kBusy, "the transaction has just made a call; it will end soon");
  if (!context->ending.claim_ending()) return {};  // its owner has come back, and ends it
  context->ending.note_abandoned();
  end_claimed(*context);
  return {};
}

// Called by the thread that has claimed the ending: the owner or another.
void TransactionManager::end_claimed(TransactionContext& context) noexcept {
  FLUGS_DCHECK(!context.ending.is_undone());
  undo(context);
  slots_.end_snapshot(*context.slot);
  context.ending.note_undone();
  ended_.fetch_add(1, std::memory_order_relaxed);
}

// Called by the owner; another thread may have claimed the ending before it.
void TransactionManager::end_now(TransactionContext& context) noexcept {
  if (context.ending.claim_ending()) end_claimed(context);
  while (!context.ending.is_undone()) std::this_thread::yield();
}

// If shared calls are under way, they read with the snapshot. They fail soon. The request stays, so
// the owner's next call ends the transaction, or commit or abort does.
Status TransactionManager::end_as_asked(TransactionContext& context) noexcept {
  const EndingState& ending = context.ending;
  if (!ending.is_visited() && !ending.is_parents() && !ending.is_in_shared_call()) end_now(context);
  return context.ending.why_ended();
}

Status TransactionManager::set_time_limit(TransactionContext& context,
                                          std::chrono::milliseconds limit) {
  constexpr std::chrono::hours kLimitMax{24 * 365};
  if (limit < std::chrono::milliseconds(0) || limit > kLimitMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the time limit is {} ms, allowed are 0 to {}", limit.count(),
                              std::chrono::milliseconds(kLimitMax).count()));
  const auto end = std::chrono::steady_clock::now().time_since_epoch() + limit;
  context.ending.set_deadline(limit.count() == 0 ? EndingState::kNoDeadline : end.count());
  return {};
}

// A transaction that a merge asked to end may still commit: it delays that merge only a little
// longer.
bool TransactionManager::refuses_commit(TransactionContext& context) noexcept {
  if (!context.ending.must_end()) return false;
  return context.ending.ended_by() != EndedBy::kMerge || context.ending.is_undone();
}

void TransactionManager::reclaim_dead_rows() noexcept {
  const std::lock_guard only(reclaim_mutex_);
  if (reclaim_holders_ != 0) return;
  FLUGS_CHECK(reclaims_.load(std::memory_order_relaxed) % 2 == 0);  // one call at a time
  reclaims_.fetch_add(1);
  for (std::uint32_t index = 0; index < contexts_.size(); ++index) {
    mvcc::Slot* const slot = slots_.acquire_idle(index);
    if (slot == nullptr) continue;
    TransactionContext& context = *contexts_[index];
    FLUGS_CHECK(slot->index() == index && context.ending.id() == 0);
    FLUGS_CHECK(context.writes.empty() && context.locks.empty());
    context.slot = slot;
    if (!context.dead_rows.empty()) reclaimer_.reclaim_all(context);
    slots_.release(*slot);
  }
  reclaims_.fetch_add(1);
}

// Every call of a transaction checks whether attention is wanted. From now on it always is, with
// kFork as the reason. Other threads do not exist in the child, and the locks that they held stay
// locked.
void TransactionManager::end_in_child() noexcept {
  for (const auto& context : contexts_) context->ending.end_in_child();
}

}  // namespace flugs::engine
