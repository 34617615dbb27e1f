#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "flugs/database.h"
#include "mvcc/stamps.h"
#include "mvcc/visibility.h"
#include "verify/isolation/sessions/history_plan.h"

namespace flugs::sessions {

/// Breaks a rule for the sessions of a run, from outside the engine: it exchanges what a
/// transaction sees during a statement. So neither the sources nor the shipped library know of it.
/// With BrokenRule::kNone it does nothing.
class RuleBreaker {
 public:
  RuleBreaker(Database& database, BrokenRule rule, std::uint32_t sessions);

  BrokenRule rule() const noexcept { return rule_; }

  /// Lets other sessions read what the transaction has written, though it has not committed.
  void offer(std::uint32_t session, const Transaction& transaction) noexcept;
  void withdraw(std::uint32_t session) noexcept;

  /// While it exists, the transaction sees what the broken rule lets it see. `draw` decides how.
  class Statement {
   public:
    Statement(RuleBreaker& breaker, Transaction& transaction, bool writes, std::uint64_t draw);
    ~Statement();
    Statement(const Statement&) = delete;
    Statement& operator=(const Statement&) = delete;

   private:
    Transaction& transaction_;
    std::uint64_t snapshot_ = 0;
    bool is_changed_ = false;
  };

 private:
  std::uint64_t now();
  mvcc::Stamp offered(std::uint64_t draw) const noexcept;

  Database& database_;
  const BrokenRule rule_;
  std::vector<std::atomic<mvcc::Stamp>> tags_;  // of transactions that have written, by session
};

}  // namespace flugs::sessions
