#include "verify/isolation/sessions/history_rules.h"

#include "engine/database/transaction_access.h"

namespace flugs::sessions {

RuleBreaker::RuleBreaker(Database& database, BrokenRule rule, std::uint32_t sessions)
    : database_(database), rule_(rule), tags_(sessions) {}

void RuleBreaker::offer(std::uint32_t session, const Transaction& transaction) noexcept {
  if (rule_ != BrokenRule::kDirtyRead) return;
  const engine::TransactionContext* context = engine::TransactionAccess::context(transaction);
  if (context == nullptr || !context->is_writing) return;
  tags_[session].store(context->slot->tag(), std::memory_order_release);
}

void RuleBreaker::withdraw(std::uint32_t session) noexcept {
  if (rule_ == BrokenRule::kDirtyRead)
    tags_[session].store(mvcc::kNoStamp, std::memory_order_release);
}

mvcc::Stamp RuleBreaker::offered(std::uint64_t draw) const noexcept {
  return tags_[draw % tags_.size()].load(std::memory_order_acquire);
}

std::uint64_t RuleBreaker::now() {
  const Result<Transaction> fresh = database_.begin(AccessMode::kReadOnly);
  return fresh.ok() ? fresh->snapshot() : 0;
}

// A snapshot is only ever exchanged for a later one, so what the registered snapshot keeps alive is
// enough. A transaction that reads by another's tag sees the other's writes; no more of these is
// freed before the reader has ended than of any aborted transaction.
RuleBreaker::Statement::Statement(RuleBreaker& breaker, Transaction& transaction, bool writes,
                                  std::uint64_t draw)
    : transaction_(transaction) {
  engine::TransactionContext* context = engine::TransactionAccess::context(transaction);
  if (breaker.rule_ == BrokenRule::kNone || context == nullptr || context->ending.is_undone())
    return;
  snapshot_ = context->visibility.snapshot();
  std::uint64_t snapshot = snapshot_;
  mvcc::Stamp tag = context->visibility.own_tag();
  if (breaker.rule_ == BrokenRule::kMovingSnapshot ||
      (breaker.rule_ == BrokenRule::kIgnoredConflict && writes)) {
    snapshot = breaker.now();
  } else if (breaker.rule_ == BrokenRule::kDirtyRead && !writes && !context->is_writing) {
    tag = breaker.offered(draw);
  }
  if (snapshot < snapshot_ || (snapshot == snapshot_ && tag == context->visibility.own_tag()))
    return;
  context->visibility = context->visibility.seen_from(snapshot, tag);
  is_changed_ = true;
}

RuleBreaker::Statement::~Statement() {
  engine::TransactionContext* context = engine::TransactionAccess::context(transaction_);
  if (!is_changed_ || context == nullptr) return;
  // The statement may have been the transaction's first write, which gave it its tag.
  context->visibility = context->visibility.seen_from(
      snapshot_, context->is_writing ? context->slot->tag() : mvcc::kNoStamp);
}

}  // namespace flugs::sessions
