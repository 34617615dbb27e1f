#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "flugs/function_ref.h"

namespace flugs::mvcc {
class TransactionSlots;
}

namespace flugs::engine {

struct LocalRows;
class RowStore;

/// The rows of a table that may be written again, apart from those that slots keep for themselves
/// (LocalRows).
///
/// Free rows may be given out at once: no reader can reach them. Swept rows died before opening and
/// were found dead since; a reader that began before that may still hold their ids. They become
/// free when every snapshot is above the latest one of when they were swept.
///
/// Invariants: a row is in one of the two lists, in the lists of one slot, in use, or taken by a
/// merge; in no two of them. The counts say how long the lists are; without the lock they may be
/// out of date.
///
/// Thread-safety: any thread.
class FreeRows final {
 public:
  explicit FreeRows(const RowStore& rows) noexcept : rows_(rows) {}
  FreeRows(const FreeRows&) = delete;
  FreeRows& operator=(const FreeRows&) = delete;

  void add(const std::vector<std::uint32_t>& rows);
  void add(std::vector<std::uint32_t>&& rows);
  /// Takes the free rows of a slot, but for those of chunks that a merge has taken or emptied since
  /// the slot got them.
  void take_over(LocalRows& local);
  /// Rows that a sweep since opening found dead.
  void add_swept(std::vector<std::uint32_t>&& rows, mvcc::TransactionSlots& slots);
  /// Lets the next look find free what is swept so far, once all transactions of now have ended.
  void release_swept_soon(mvcc::TransactionSlots& slots);
  /// Moves some free rows into what a slot keeps; false: there are none.
  bool refill(LocalRows& local);
  /// Removes from a slot's rows those of chunks that were emptied since the last call, because they
  /// may belong to others by now. Call it before rows are added there.
  void forget_emptied(LocalRows& local) const noexcept;
  /// For a merge: the rows for which `is_taken` will not be given out.
  void forget(FunctionRef<bool(std::uint32_t row)> is_taken);
  /// The table is dropped: forgets all rows, and gives the memory back.
  void release_all();

  /// In both lists.
  std::size_t count() const noexcept {
    return free_count_.load(std::memory_order_relaxed) +
           swept_count_.load(std::memory_order_relaxed);
  }

 private:
  void release_swept();

  const RowStore& rows_;
  std::mutex mutex_;  // protects free_, swept_, slots_ and looked_at_; a leaf
  std::vector<std::uint32_t> free_;
  std::atomic<std::size_t> free_count_{0};
  struct Swept {
    std::uint64_t since;  // they are free when every snapshot is above it
    std::vector<std::uint32_t> rows;
  };
  std::vector<Swept> swept_;
  std::atomic<std::size_t> swept_count_{0};
  mvcc::TransactionSlots* slots_ = nullptr;  // not null if a row was ever swept
  std::uint64_t looked_at_ = 0;              // time of the last look whether swept rows are free
};

}  // namespace flugs::engine
