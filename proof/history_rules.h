#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "flugs/database.h"
#include "mvcc/stamps.h"
#include "mvcc/visibility.h"
#include "proof/history_plan.h"

namespace flugs::proof {

/// Breaks a rule for the sessions of a run, from outside of the engine: what a transaction sees is
/// exchanged for the time of a statement, so the sources, and what is shipped, know nothing of it.
/// With BrokenRule::kNone nothing is done.
class RuleBreaker {
 public:
  RuleBreaker(Database& database, BrokenRule rule, std::uint32_t sessions);

  BrokenRule rule() const noexcept { return rule_; }

  /// What other sessions may read of it, though it has not committed.
  void offer(std::uint32_t session, const Transaction& transaction) noexcept;
  void withdraw(std::uint32_t session) noexcept;

  /// While it lives, the transaction sees what the broken rule lets it see. `draw` decides how.
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

}  // namespace flugs::proof
