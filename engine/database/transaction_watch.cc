#include "engine/database/transaction_watch.h"

#include "base/check.h"

namespace flugs::engine {

namespace {

std::chrono::milliseconds whole(TransactionWatch::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

}  // namespace

std::vector<TransactionInfo> TransactionWatch::look(
    std::span<const std::unique_ptr<TransactionContext>> contexts, mvcc::TransactionSlots& slots) {
  std::vector<TransactionInfo> open;
  FLUGS_CHECK(contexts.size() == seen_.size());
  const std::lock_guard guard(mutex_);
  const Clock::time_point now = Clock::now();
  const std::uint64_t clock = slots.now();
  for (std::size_t slot = 0; slot < contexts.size(); ++slot) {
    EndingState& ending = contexts[slot]->ending;
    const TransactionId id(ending.id());
    if (id == TransactionId()) continue;
    FLUGS_DCHECK(TransactionContext::slot_in(id.value()) == slot);
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

}  // namespace flugs::engine
