#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "flugs/status.h"
#include "mvcc/transaction_slots.h"
#include "pmem/medium/persist.h"
#include "tables/rows/unswept_rows.h"

namespace flugs::engine {

class FreeRows;
class RowGroup;
struct TableData;

/// The sweep of a table's rows that were there at opening: it ends rows that died before, or were
/// never committed, removes stale tags, and checks the cells of the others. Opening sweeps some
/// rows at once, in parallel; it may defer the first ones, in blocks.
///
/// Invariants: a deferred block is swept once, by the thread that takes it. No row of it leaves an
/// index, or is given free, before that. An error found later is kept, and returned to every caller
/// of sweep_all.
///
/// Thread-safety: any thread, except defer.
class RowSweep final {
 public:
  struct Counts {
    std::uint64_t live = 0;
    std::uint64_t recycled = 0;
  };
  enum class Moment : std::uint8_t { kOpening, kOpen };

  RowSweep(const TableData& data, FreeRows& free_rows) noexcept
      : data_(data), free_rows_(free_rows) {}
  RowSweep(const RowSweep&) = delete;
  RowSweep& operator=(const RowSweep&) = delete;

  /// Sweeps rows from `first` to `end` - 1, and adds to `free` those that are free now. The caller
  /// fences. Fails with kCorrupt.
  Status sweep(std::uint32_t first, std::uint32_t end, Moment moment,
               const mvcc::TransactionSlots& slots, std::vector<std::uint32_t>& free,
               pmem::Persister& persister, Counts& counts) const;
  /// Opening: how many rows may be deferred, from the first on, a multiple of
  /// UnsweptRows::kBlockRows, unless keys are made of them. `tables`: their number.
  std::uint32_t rows_left_unswept(std::size_t tables) const noexcept;
  /// Opening: defers the rows below `end`, a multiple of UnsweptRows::kBlockRows.
  void defer(std::uint32_t end, mvcc::TransactionSlots& slots);

  /// Whether garbage collection may unlink a row: not before it is swept, nor while a thread sweeps
  /// it. Sweeps its block if no thread has, unless `sweeps_left` is 0.
  bool may_unlink(std::uint32_t row, std::size_t& sweeps_left);
  /// Sweeps a deferred block; false: none is left that no other thread has taken.
  bool sweep_more();
  /// Sweeps all that is left. Fails with kCorrupt for any row since opening.
  Status sweep_all();
  std::uint32_t unswept_rows() const noexcept { return unswept_.rows(); }
  /// Called when the table is dropped: on return no thread sweeps rows of it.
  void forget() noexcept { unswept_.forget(); }

 private:
  Status sweep_group(const RowGroup& group, std::uint32_t first, std::uint32_t end, Moment moment,
                     const mvcc::TransactionSlots& slots, pmem::Persister& persister,
                     Counts& counts) const;
  Status sweep_rows(std::uint32_t first, std::uint32_t end, Moment moment,
                    const mvcc::TransactionSlots& slots, std::vector<std::uint32_t>& free,
                    pmem::Persister& persister, Counts& counts) const;
  Status impossible_stamps(std::uint32_t row, const mvcc::TransactionSlots& slots) const;
  void sweep_block(std::uint32_t block);

  const TableData& data_;
  FreeRows& free_rows_;
  UnsweptRows unswept_;
  mvcc::TransactionSlots* slots_ = nullptr;  // when rows were deferred
  std::mutex mutex_;                         // protects status_; a leaf
  Status status_;
};

}  // namespace flugs::engine
