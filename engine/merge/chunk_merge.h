#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/main/main_column_builder.h"
#include "columns/main/main_records.h"
#include "columns/main/main_text_reader.h"
#include "mvcc/transaction_slots.h"
#include "mvcc/visibility.h"
#include "pmem/pool/pool.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

/// Merges one chunk, of rows or a group: its rows that are not dead go into a new row group with
/// the same row ids. Before that, the chunk has been frozen; then its unused rows were noted, and
/// all transactions that were open then have ended. So each row is committed in every snapshot, or
/// dead, or unused, and no transaction has the id of a row that was noted. Thread-safety: one
/// thread.
class ChunkMerge {
 public:
  struct Counts {
    std::uint32_t rows = 0;
    std::uint32_t dropped = 0;
    std::uint64_t bytes_before = 0;
    std::uint64_t bytes_after = 0;
    double build_us = 0;
    double move_us = 0;  ///< the longest that writers were kept waiting
  };

  /// By offset: rows that no transaction has created, or that are dead and in no index any more.
  using UnusedRows = std::vector<bool>;
  static UnusedRows find_unused(mvcc::TransactionSlots& slots, const RowStore& rows,
                                std::size_t chunk);

  ChunkMerge(pmem::Pool& pool, mvcc::TransactionSlots& slots, TableData& table, std::size_t chunk,
             const UnusedRows& unused);
  /// The group must lie before this offset of the pool, as far to the front as there is space.
  void place_before(std::uint64_t offset) noexcept { before_ = offset; }

  /// Leaves the space that deletions need, also if the merge has none then.
  void spare_deletions() noexcept { purpose_ = pmem::Purpose::kMerge; }

  /// If there is no room for a group with records (columns::MainRecords), writes it without them.
  /// Single rows are then read more slowly, until the group is merged again.
  void may_omit_records() noexcept { may_omit_records_ = true; }

  /// Writes the group without records, whether there is room or not.
  void omit_records() noexcept { omits_records_ = true; }

  /// With the chunk goes what keeps the former edition of a column, which takes more than the
  /// group.
  void gives_former_back() noexcept { gives_former_back_ = true; }

  /// If all rows of a group are dead, its row ids are wanted: it becomes an empty chunk of rows, if
  /// there is space for one. Otherwise it becomes a group without rows.
  void want_row_ids() noexcept { wants_row_ids_ = true; }

  /// Fails with kBusy (for `patience`, some transaction held a row of the chunk), kOutOfSpace; then
  /// nothing has changed.
  Status run(std::chrono::milliseconds patience);
  const Counts& counts() const noexcept { return counts_; }
  /// No row was left: the chunk is empty, and its row ids can be used again.
  bool is_empty() const noexcept { return is_empty_; }
  /// The group holds texts compressed that were in a column's heap: their places there are waste.
  bool leaves_texts() const noexcept { return leaves_texts_; }

 private:
  struct ColumnData {
    std::vector<std::int64_t> payloads;
    std::vector<std::uint8_t> nulls;
    std::vector<columns::Cell> cells;
    std::string texts;          // long texts of the cells, if they do not lead into the pool
    bool is_in_memory = false;  // whether long cells lead into `texts`
  };

  Status choose_rows();
  bool is_kept(std::uint32_t offset) const;
  bool is_gone(std::uint32_t offset, bool is_key, std::uint64_t dead_until) const;
  void keep_texts(columns::Column& column, std::span<columns::Cell> cells) const;
  const columns::Column& edition_of_rows(std::size_t index,
                                         const columns::Column& column) const noexcept;
  RowView view_with_entry(std::size_t i, std::size_t index,
                          const columns::Column& edition) const noexcept;
  Status gather(std::size_t index, columns::Column& column, ColumnData& data);
  Status gather_texts(std::size_t index, columns::Column& column, ColumnData& data);
  void gather_compressed(const columns::MainColumn& from, ColumnData& data) const;
  columns::MainColumnBuilder builder_of(const columns::Column& column,
                                        const ColumnData& data) const;
  Status build();
  Result<pmem::Extent> allocate(std::uint64_t bytes);
  bool is_read_by_row(const columns::MainRecords& records) const noexcept;
  bool frees_room(std::uint64_t group_bytes, std::uint64_t kept_bytes = 0) const noexcept;
  bool is_better_left(std::uint64_t group_bytes) const;
  bool has_room_for_records(std::uint64_t group_bytes) const;
  void write_group(std::span<const columns::MainColumnBuilder> builders,
                   const columns::MainRecords* records);
  void write_records(const columns::MainRecords& records, RowGroupLayout& layout,
                     std::uint64_t offset) const;
  void write_places(RowGroupLayout& layout) const;
  Status make_empty_chunk();
  Status move(bool& moved);
  Status carry_over(bool& is_locked);
  Status put_version(std::uint32_t offset, const mvcc::VersionLayout& version);
  void discard() noexcept;

  pmem::Pool& pool_;
  mvcc::TransactionSlots& slots_;
  TableData& table_;
  RowStore& rows_;
  const std::size_t chunk_;
  const std::uint32_t first_row_;
  const std::uint32_t row_count_;
  const UnusedRows& unused_;
  mvcc::Visibility now_;
  std::uint64_t oldest_;  // the oldest snapshot
  bool may_omit_records_ = false;
  bool omits_records_ = false;
  bool gives_former_back_ = false;
  bool wants_row_ids_ = false;
  bool is_empty_ = false;
  bool leaves_texts_ = false;
  std::uint64_t before_ = 0;  // 0: anywhere
  pmem::Purpose purpose_ = pmem::Purpose::kReclaim;
  pmem::Persister persister_;
  std::vector<std::uint32_t> stored_;  // offsets of rows that stay, ascending
  pmem::Extent extent_{};
  std::vector<pmem::Extent> blocks_;
  Counts counts_;
};

}  // namespace flugs::engine
