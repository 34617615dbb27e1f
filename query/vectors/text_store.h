#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <string_view>

#include "query/vectors/text_arena.h"

namespace flugs::query {

/// The texts of a running query's constants, and those that it computes; see RunContext.
class TextStore {
 public:
  /// Memory of computed texts counts for `budget`, which must outlive the store.
  explicit TextStore(MemoryBudget* budget = nullptr) noexcept : budget_(budget) {}

  /// A copy, which stays in place. Thread-safety: the thread that plans the query.
  std::string_view keep(std::string_view text) { return texts_.emplace_back(text); }
  /// Memory for one worker, as long as the store is there. Thread-safety: any thread.
  TextArena& new_arena() {
    const std::lock_guard guard(mutex_);
    return arenas_.emplace_back(budget_);
  }

  /// What memory of computed texts counts for; may be null.
  MemoryBudget* budget() const noexcept { return budget_; }

 private:
  std::deque<std::string> texts_;
  std::mutex mutex_;  // a leaf
  std::deque<TextArena> arenas_;
  MemoryBudget* budget_;
};

}  // namespace flugs::query
