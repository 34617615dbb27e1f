#pragma once

#include <atomic>
#include <cstdint>

#include "mvcc/transaction_slots.h"
#include "pmem/space/extent_allocator.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// Makes rows that no snapshot sees usable again: protocol recycle. Each transaction that wrote
/// does this at its end, a few rows at a time, for the dead rows of its slot (DeadRows).
///
/// Invariant: a row leaves the indexes when no snapshot sees it, and becomes usable when, besides,
/// no reader can have its id from an index and a commit has made its removal durable.
///
/// Thread-safety: any thread, each for the context of its slot.
class RowReclaimer final {
 public:
  RowReclaimer(mvcc::TransactionSlots& slots, const pmem::ExtentAllocator& allocator) noexcept
      : slots_(slots), allocator_(allocator) {}

  /// Called at the end of a transaction that wrote: reclaims a few rows. True when it has looked
  /// for the oldest snapshot again, which it does once in some thousand transactions of a slot.
  bool reclaim(TransactionContext& context);

  /// Each transaction does the following at its end, once.
  void want_rows() noexcept { rows_wanted_.fetch_add(1); }
  /// Makes all dead rows of the slot usable that no snapshot holds, whatever that costs. No
  /// transaction is in the slot.
  void reclaim_all(TransactionContext& context);

 private:
  mvcc::TransactionSlots& slots_;
  const pmem::ExtentAllocator& allocator_;
  std::atomic<std::uint64_t> rows_wanted_{0};  // transactions for which there was no space for rows
};

}  // namespace flugs::engine
