#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "tables/transactions/row_locks.h"

namespace flugs::engine {

/// The records that the transaction of one slot has locked, in the order in which it locked them.
///
/// Invariant: each is locked in the database's RowLocks in the name of the slot, once.
/// Thread-safety: the thread that has the slot, or that has claimed to end its transaction.
class HeldLocks final {
 public:
  /// Once, before the first transaction.
  void connect(RowLocks& all, std::uint32_t slot) noexcept {
    FLUGS_CHECK(all_ == nullptr);
    all_ = &all;
    slot_ = slot;
  }

  bool empty() const noexcept { return locks_.empty(); }
  std::size_t size() const noexcept { return locks_.size(); }
  /// The transaction has locked the record, which it had not before (RowLocks::lock).
  void add(const LockName& name) { locks_.push_back(name); }
  /// Releases all but the first `count`.
  void release_since(std::size_t count) noexcept {
    FLUGS_DCHECK(count <= locks_.size());
    for (; locks_.size() > count; locks_.pop_back()) all_->unlock(locks_.back(), slot_);
  }

  /// Whether this transaction has locked the record; whether another one has (RowLocks).
  bool is_own(const LockName& name) const { return all_->is_own(name, slot_); }
  bool is_others(const LockName& name) const { return all_->is_others(name, slot_); }

 private:
  RowLocks* all_ = nullptr;
  std::uint32_t slot_ = 0;
  std::vector<LockName> locks_;
};

}  // namespace flugs::engine
