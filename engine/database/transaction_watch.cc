// Who has a transaction open, and how one is ended from another thread.

#include "engine/database/transaction_watch.h"

#include <fmt/format.h>

#include <thread>

#include "engine/database/database_core.h"
#include "mvcc/asymmetric_barrier.h"

namespace flugs::engine {

namespace {

std::chrono::milliseconds whole(TransactionWatch::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

Status no_transaction() {
  return Status(StatusCode::kNotFound, "no such transaction is open, or not any more");
}

}  // namespace

std::vector<TransactionInfo> TransactionWatch::look(
    std::span<const std::unique_ptr<TransactionContext>> contexts, mvcc::TransactionSlots& slots) {
  std::vector<TransactionInfo> open;
  const std::lock_guard guard(mutex_);
  const Clock::time_point now = Clock::now();
  const std::uint64_t clock = slots.now();
  for (std::size_t slot = 0; slot < contexts.size(); ++slot) {
    EndingState& ending = contexts[slot]->ending;
    const TransactionId id(ending.id());
    if (id == TransactionId()) continue;
    const mvcc::SlotMirror& mirror = slots.mirrors()[slot];
    const std::uint64_t snapshot = mirror.snapshot.load(std::memory_order_acquire);
    Seen& seen = seen_[slot];
    const std::uint64_t answers = ending.answers();
    if (!(seen.id == id)) seen = {id, now, now, answers};
    if (seen.answers != answers) {
      seen.asked = now;
      seen.answers = answers;
    }
    TransactionInfo info;
    info.id = id;
    info.slot = static_cast<std::uint32_t>(slot);
    info.mode = TransactionContext::mode_in(id.value());
    info.isolation = TransactionContext::isolation_in(id.value());
    info.snapshots_behind = snapshot < clock ? clock - snapshot : 0;
    info.open = whole(now - seen.first);
    info.idle = whole(now - seen.asked);
    info.is_in_call = ending.is_in_call();
    info.is_asked_to_end =
        ending.ended_by() != EndedBy::kNobody || ending.is_cancelled(id.value()) ||
        (snapshot != mvcc::SlotMirror::kNoSnapshot && snapshot < slots.asked_to_end().load());
    info.is_ended = ending.is_undone();
    open.push_back(info);
    ending.draw_attention();
  }
  return open;
}

std::vector<TransactionInfo> DatabaseCore::transactions() const {
  return watch_->look(contexts_, *slots_);
}

TransactionContext* DatabaseCore::context_of(TransactionId id) const noexcept {
  const std::uint64_t slot = TransactionContext::slot_in(id.value());
  if (id == TransactionId() || slot >= contexts_.size()) return nullptr;
  TransactionContext* context = contexts_[slot].get();
  return context->ending.id() == id.value() ? context : nullptr;
}

Status DatabaseCore::cancel(TransactionId id) noexcept {
  TransactionContext* context = context_of(id);
  if (context == nullptr) return no_transaction();
  context->ending.cancel(id.value());
  return {};
}

// Every call that began since the look at which it was asked to answer would have answered. A call
// marks that it is under way and then looks whether it is to end; here the order is the other way
// round: so one that is under way is seen, and one that comes sees that it is to end, and finds the
// ender at it.
Status DatabaseCore::end_abandoned(TransactionId id, std::chrono::milliseconds idle) {
  if (idle < std::chrono::milliseconds(10))
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("idle is {} ms, allowed are 10 and more", idle.count()));
  TransactionContext* context = context_of(id);
  if (context == nullptr) return no_transaction();
  for (const TransactionInfo& info : transactions()) {
    if (!(info.id == id) || info.is_ended) continue;
    if (info.is_in_call) return Status(StatusCode::kBusy, "a call of the transaction is under way");
    if (info.idle >= idle) continue;
    return Status(StatusCode::kBusy,
                  fmt::format("the transaction has been without a call for {} ms that are known "
                              "of, of {}",
                              info.idle.count(), idle.count()));
  }
  const std::uint64_t answers = context->ending.answers();
  if (Status s = cancel(id); !s.ok()) return s;
  mvcc::heavy_barrier();
  if (context->ending.is_in_call())
    return Status(StatusCode::kBusy, "a call of the transaction is under way; it is to end");
  if (context->ending.answers() != answers || context_of(id) == nullptr)
    return Status(StatusCode::kBusy, "the transaction has just made a call; it is to end");
  if (!context->ending.claim_ending()) return {};  // its owner has come back, and ends it
  context->ending.note_abandoned();
  end_claimed(*context);
  return {};
}

// By whoever has claimed it, its owner or another.
void DatabaseCore::end_claimed(TransactionContext& context) noexcept {
  undo(context);
  slots_->end_snapshot(*context.slot);
  context.ending.note_undone();
  ended_.fetch_add(1, std::memory_order_relaxed);
}

// By its owner, whom somebody else may have forestalled.
void DatabaseCore::end_now(TransactionContext& context) noexcept {
  if (context.ending.claim_ending()) end_claimed(context);
  while (!context.ending.is_undone()) std::this_thread::yield();
}

Status DatabaseCore::end_as_asked(TransactionContext& context) noexcept {
  if (!context.ending.is_visited() && !context.ending.is_parents()) end_now(context);
  return context.ending.why_ended();
}

Status DatabaseCore::set_time_limit(TransactionContext& context, std::chrono::milliseconds limit) {
  constexpr std::chrono::hours kLimitMax{24 * 365};
  if (limit < std::chrono::milliseconds(0) || limit > kLimitMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the time limit is {} ms, allowed are 0 to {}", limit.count(),
                              whole(kLimitMax).count()));
  const auto end = std::chrono::steady_clock::now().time_since_epoch() + limit;
  context.ending.set_deadline(limit.count() == 0 ? EndingState::kNoDeadline : end.count());
  return {};
}

// What was asked to end by a merge may still commit: it does not hold that one up much longer.
bool DatabaseCore::refuses_commit(TransactionContext& context) noexcept {
  if (!context.ending.must_end()) return false;
  return context.ending.ended_by() != EndedBy::kMerge || context.ending.is_undone();
}

}  // namespace flugs::engine
