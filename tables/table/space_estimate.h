#pragma once

#include <cstdint>
#include <vector>

#include "flugs/merge.h"
#include "mvcc/transaction_slots.h"
#include "mvcc/visibility.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

struct TableData;

/// What a merge of everything would give back of a table. Looks at one row in `step`: with 1 the
/// counts of rows are exact while no thread writes. Reads a line of the pool for each of these rows
/// in the delta, for each deleted one in main, and for each long text.
///
/// Thread-safety: one thread, which may have an open transaction. Others may write to the table,
/// merge it and drop it meanwhile.
class SpaceEstimate final {
 public:
  SpaceEstimate(const TableData& data, mvcc::TransactionSlots& slots, std::uint32_t step);

  /// Holds a snapshot for one chunk after the other, so a merge goes on beside it. Waits for no
  /// transaction.
  void count_rows();
  /// Then: counts what columns own. Under the database's ddl_mutex_.
  void count_columns();
  const MergeEstimate& result() const noexcept { return estimate_; }

 private:
  enum class State : std::uint8_t { kLive, kDead, kHeld };
  State state_of(const mvcc::Stamp& deleted, const mvcc::Visibility& now) const noexcept;
  void add_chunk(std::size_t chunk, const mvcc::Visibility& now);
  void add_texts(const columns::RowLayout& layout, const std::byte* row, std::uint64_t rows);
  void add_group(const RowGroup& group, const mvcc::Visibility& now, bool reads_texts);

  const TableData& data_;
  mvcc::TransactionSlots& slots_;
  const std::uint32_t step_;
  const std::uint64_t oldest_;             // the snapshot of the oldest transaction
  std::vector<std::uint64_t> text_bytes_;  // by column: of long texts that rows need
  MergeEstimate estimate_;
};

}  // namespace flugs::engine
