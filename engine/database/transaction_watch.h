#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "flugs/database.h"
#include "mvcc/transaction_slots.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// How long transactions have been open, and how long they have made no call. Transactions do no
/// work for this. Each look asks them to answer, which a transaction does in its next call; the
/// next look sees whether it has. So times count from the look before, and are never too long.
/// Thread-safety: any thread.
class TransactionWatch {
 public:
  using Clock = std::chrono::steady_clock;

  explicit TransactionWatch(std::size_t slots) : seen_(slots) {}

  /// Every open transaction, in the order of slots.
  std::vector<TransactionInfo> look(std::span<const std::unique_ptr<TransactionContext>> contexts,
                                    mvcc::TransactionSlots& slots);

 private:
  struct Seen {
    TransactionId id;
    Clock::time_point first;
    Clock::time_point asked;    // to answer
    std::uint64_t answers = 0;  // their number when it was asked
  };

  std::mutex mutex_;  // protects seen_; a leaf
  std::vector<Seen> seen_;
};

}  // namespace flugs::engine
