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

// A word that is stored behind another one of its own: whoever sees the first one set, in
// must_end, sees why (release here, acquire there).
void TransactionContext::draw_attention() noexcept {
  attention->store(1, std::memory_order_release);
}

bool TransactionContext::must_end() const noexcept {
  attention->exchange(0, std::memory_order_acq_rel);
  answers.fetch_add(1, std::memory_order_relaxed);
  EndedBy why = ended_by.load(std::memory_order_acquire);
  const std::int64_t limit = deadline.load(std::memory_order_relaxed);
  if (why == EndedBy::kNobody) {
    if (begun_at < asked_to_end->load(std::memory_order_acquire)) why = EndedBy::kMerge;
    if (cancelled.load(std::memory_order_acquire) == current.load(std::memory_order_relaxed))
      why = EndedBy::kCancel;
    if (why == EndedBy::kNobody && limit != kNoDeadline &&
        std::chrono::steady_clock::now().time_since_epoch().count() >= limit)
      why = EndedBy::kTimeLimit;
    if (why != EndedBy::kNobody) ended_by.store(why, std::memory_order_release);
  }
  if (why != EndedBy::kNobody || limit != kNoDeadline)
    attention->store(1, std::memory_order_release);
  return why != EndedBy::kNobody;
}

// The slot's former transaction had a time limit, or was ended: from the next call on nothing of it
// is left.
void TransactionContext::forget_former() noexcept {
  deadline.store(kNoDeadline, std::memory_order_relaxed);
  ended_by.store(EndedBy::kNobody, std::memory_order_relaxed);
  ender.store(0, std::memory_order_relaxed);
  is_undone.store(false, std::memory_order_relaxed);
}

Status forked() {
  return Status(StatusCode::kInvalidArgument,
                "this process is a fork of the one that opened the database, and cannot use it: "
                "open the pool here, after that process has closed it");
}

Status why_ended(const TransactionContext& context) {
  switch (context.ended_by.load(std::memory_order_acquire)) {
    case EndedBy::kCancel:
      return Status(StatusCode::kCancelled, "the transaction was ended: it was cancelled");
    case EndedBy::kTimeLimit:
      return Status(StatusCode::kCancelled, "the transaction was ended: its time limit is over");
    case EndedBy::kAbandoned:
      return Status(StatusCode::kCancelled,
                    "the transaction was ended: it made no call for so long that it was taken to "
                    "be abandoned");
    case EndedBy::kFork:
      return forked();
    case EndedBy::kNobody:
    case EndedBy::kMerge:
      break;
  }
  return Status(StatusCode::kCancelled,
                "the transaction was ended: a merge that it held up had asked for that");
}

std::vector<TransactionInfo> TransactionWatch::look(
    std::span<const std::unique_ptr<TransactionContext>> contexts, mvcc::TransactionSlots& slots) {
  std::vector<TransactionInfo> open;
  const std::lock_guard guard(mutex_);
  const Clock::time_point now = Clock::now();
  const std::uint64_t clock = slots.now();
  for (std::size_t slot = 0; slot < contexts.size(); ++slot) {
    TransactionContext& context = *contexts[slot];
    const TransactionId id(context.current.load(std::memory_order_acquire));
    if (id == TransactionId()) continue;
    const mvcc::SlotMirror& mirror = slots.mirrors()[slot];
    const std::uint64_t snapshot = mirror.snapshot.load(std::memory_order_acquire);
    Seen& seen = seen_[slot];
    const std::uint64_t answers = context.answers.load(std::memory_order_relaxed);
    if (!(seen.id == id)) seen = {id, now, now, answers};
    if (seen.answers != answers) {
      seen.asked = now;
      seen.answers = answers;
    }
    TransactionInfo info;
    info.id = id;
    info.slot = static_cast<std::uint32_t>(slot);
    info.mode = context.mode_in(id.value());
    info.isolation = context.isolation_in(id.value());
    info.snapshots_behind = snapshot < clock ? clock - snapshot : 0;
    info.open = whole(now - seen.first);
    info.idle = whole(now - seen.asked);
    info.is_in_call = context.in_call.load(std::memory_order_acquire) != 0;
    info.is_asked_to_end =
        context.ended_by.load(std::memory_order_acquire) != EndedBy::kNobody ||
        context.cancelled.load(std::memory_order_acquire) == id.value() ||
        (snapshot != mvcc::SlotMirror::kNoSnapshot && snapshot < slots.asked_to_end().load());
    info.is_ended = context.is_undone.load(std::memory_order_acquire);
    open.push_back(info);
    context.draw_attention();
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
  return context->current.load(std::memory_order_acquire) == id.value() ? context : nullptr;
}

// One that ends meanwhile is not the next one: `cancelled` names it.
Status DatabaseCore::cancel(TransactionId id) noexcept {
  TransactionContext* context = context_of(id);
  if (context == nullptr) return no_transaction();
  context->cancelled.store(id.value(), std::memory_order_release);
  context->draw_attention();
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
  const std::uint64_t answers = context->answers.load(std::memory_order_acquire);
  if (Status s = cancel(id); !s.ok()) return s;
  mvcc::heavy_barrier();
  if (context->in_call.load(std::memory_order_acquire) != 0)
    return Status(StatusCode::kBusy, "a call of the transaction is under way; it is to end");
  if (context->answers.load(std::memory_order_acquire) != answers || context_of(id) == nullptr)
    return Status(StatusCode::kBusy, "the transaction has just made a call; it is to end");
  if (!context->claim_ending()) return {};  // its owner has come back, and ends it
  context->ended_by.store(EndedBy::kAbandoned, std::memory_order_release);
  end_claimed(*context);
  return {};
}

// By whoever has claimed it, its owner or another.
void DatabaseCore::end_claimed(TransactionContext& context) noexcept {
  undo(context);
  slots_->end_snapshot(*context.slot);
  context.is_undone.store(true, std::memory_order_release);
  ended_.fetch_add(1, std::memory_order_relaxed);
}

// By its owner, whom somebody else may have forestalled.
void DatabaseCore::end_now(TransactionContext& context) noexcept {
  if (context.claim_ending()) end_claimed(context);
  while (!context.is_undone.load(std::memory_order_acquire)) std::this_thread::yield();
}

Status DatabaseCore::end_as_asked(TransactionContext& context) noexcept {
  if (context.visits.load(std::memory_order_relaxed) == 0 && !context.is_parents())
    end_now(context);
  return why_ended(context);
}

Status DatabaseCore::set_time_limit(TransactionContext& context, std::chrono::milliseconds limit) {
  constexpr std::chrono::hours kLimitMax{24 * 365};
  if (limit < std::chrono::milliseconds(0) || limit > kLimitMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("the time limit is {} ms, allowed are 0 to {}", limit.count(),
                              whole(kLimitMax).count()));
  const auto end = std::chrono::steady_clock::now().time_since_epoch() + limit;
  context.deadline.store(limit.count() == 0 ? TransactionContext::kNoDeadline : end.count(),
                         std::memory_order_relaxed);
  context.draw_attention();
  return {};
}

// What was asked to end by a merge may still commit: it does not hold that one up much longer.
bool DatabaseCore::refuses_commit(TransactionContext& context) noexcept {
  if (!context.must_end()) return false;
  return context.ended_by.load(std::memory_order_acquire) != EndedBy::kMerge ||
         context.is_undone.load(std::memory_order_acquire);
}

}  // namespace flugs::engine
