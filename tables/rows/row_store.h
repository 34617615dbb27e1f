#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/mutex.h"
#include "base/shared_words.h"
#include "base/stable_array.h"
#include "flugs/function_ref.h"
#include "pmem/space/chunk_list.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/rows/row_chunk.h"
#include "tables/rows/row_chunk_headers.h"
#include "tables/rows/row_layouts.h"
#include "tables/rows/row_view.h"
#include "tables/rows/seen_parts.h"

namespace flugs::pmem {
class WarmList;
}

namespace flugs::engine {

/// No row: the end of a chain of versions.
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

/// Unused rows side by side in one chunk, which belong to one transaction slot.
struct RowRange {
  std::uint32_t next = 0;
  std::uint32_t end = 0;
  const columns::RowLayout* layout = nullptr;
};

/// The rows of a table: append-only chunks that never move. A row is its MVCC entry and the cells
/// of all columns, side by side (decision 0002) or in arrays of columns (decision 0065), as the
/// chunk's layout says. The store grants rows in small ranges, and only the
/// owner of a range writes its rows. A chunk for coming rows is made before it is needed.
///
/// Each chunk has its own cell widths. When a value needs a wider cell, a new chunk begins; widths
/// never shrink, so that a value of an older chunk fits a newer one. Chunks older than an added
/// column have no cells for it, and take no more rows; chunks newer than a drop have no cells of
/// the dropped column (decision 0023).
///
/// The merge replaces a chunk by a row group (decision 0012), and the rows keep their ids.
/// `address`, `layout` and all functions that write cells are for rows in chunks only; `view` and
/// `version` are for any row.
///
/// Thread-safety: any thread, except load.
/// Source: SOFORT (DaMoN 2014), section 2; append-only without the paper's blocking resize.
class RowStore final {
 public:
  /// `columns` are the table's.
  RowStore(pmem::Pool& pool, TableLayout& layout, const columns::ColumnArray& columns,
           std::string owner);
  ~RowStore();

  /// How many rows the chunks of a new table have.
  static columns::ChunkGeometry geometry_for(std::uint32_t row_bytes, std::uint64_t segment_bytes);

  /// Opening: claims the chunks, checks those that differ in layout from the chunk before, then
  /// finds where unused rows begin.
  Status load();
  /// Checks the header of the chunk with `row`, which must not be in a group. load leaves this
  /// check for later, because each costs a page fault. Fails with kCorrupt.
  Status check_header(std::uint32_t row) const;
  /// While it exists, no chunk is made, so that a column can be added to all existing chunks.
  class ColumnsChange {
   public:
    explicit ColumnsChange(RowStore& rows) : rows_(rows), guard_(rows.grow_mutex_) {}
    /// `columns` are the table's. Rows of chunks that lack the column have its constant.
    void add(columns::ColumnArray& columns, std::unique_ptr<columns::Column> column);
    /// Replaces column `i` by `next`: chunks that are begun from then on have cells of `next`.
    void change(columns::ColumnArray& columns, std::size_t i, std::unique_ptr<columns::Column> next,
                std::uint16_t edition);

   private:
    RowStore& rows_;
    const std::lock_guard<Mutex> guard_;
  };
  /// Whether a chunk has cells of that edition of the column or, if `in_groups`, a group has values
  /// of it. Call it at opening, or under the table's merge_mutex().
  bool has_values_of(std::size_t column, std::uint16_t edition,
                     bool in_groups = true) const noexcept;
  /// The same; also true if a chunk lacks the column and its rows read as the constant of that
  /// edition.
  bool is_read_as(std::size_t column, std::uint16_t edition, bool in_groups = true) const noexcept;
  /// The same as is_read_as; also true if a group names that edition, even if all its values are
  /// NULL: opening the group looks the edition up.
  bool names_edition(std::size_t column, std::uint16_t edition,
                     bool in_groups = true) const noexcept;

  bool exists(std::uint32_t row) const noexcept {
    note_read(SharedWord::kRowGrant, &row_limit_);
    return row < row_limit_.load(std::memory_order_acquire);
  }
  /// The chunk that the row, which must exist, is in: for callers that need several things of it.
  // Inlined whatever the compiler thinks of the size of its unit: readers come here for each
  // version.
  [[gnu::always_inline]] const RowChunk& chunk_with(std::uint32_t row) const noexcept {
    return chunks_in_dram_[geometry_.chunk_of(row)];
  }
  /// Where the cells of `row` are; the row must exist.
  [[gnu::always_inline]] RowView view(std::uint32_t row) const noexcept {
    return chunk_with(row).view(row);
  }
  /// The row's MVCC entry. For a row in a group it is read-only; to write, use `writable_version`.
  [[gnu::always_inline]] mvcc::VersionLayout& version(std::uint32_t row) const noexcept {
    return chunk_with(row).version(row);
  }
  /// The same, for a caller that is going to lock the row or has locked it. Fails with kOutOfSpace.
  Result<mvcc::VersionLayout*> writable_version(std::uint32_t row, pmem::Persister& persister) {
    return chunk_with(row).writable_version(row, persister);
  }
  /// The entry of a row that was, or is being, created or deleted; null when there is none.
  mvcc::VersionLayout* stamped_version(std::uint32_t row) const noexcept {
    return chunk_with(row).stamped_version(row);
  }
  /// Tells scans that the row's deleted word has the caller's tag; take_mark_back tells scans of
  /// main that the tag will be taken back. A scan of rows side by side reads every entry anyway.
  /// Returns whether the row is in main.
  bool mark_deleted(std::uint32_t row) noexcept {
    const RowChunk& chunk = chunk_with(row);
    RowGroup* group = chunk.group_now();
    if (__builtin_expect(group == nullptr, 1)) {
      if (__builtin_expect(chunk.is_in_columns, 0))
        seen_.note_tag(geometry_.chunk_of(row), row - chunk.first_row);
      return false;
    }
    group->mark_deleted(row - chunk.first_row);
    return true;
  }
  /// Called after the deletion's commit, while its transaction is still open: so a group that a
  /// merge has replaced meanwhile still exists.
  void note_deleted(std::uint32_t row, std::uint64_t timestamp) noexcept {
    const RowChunk& chunk = chunk_with(row);
    if (RowGroup* group = chunk.group_now(); group != nullptr)
      group->note_deleted(row - chunk.first_row, timestamp);
  }
  void take_mark_back(std::uint32_t row) noexcept {
    const RowChunk& chunk = chunk_with(row);
    if (RowGroup* group = chunk.group_now(); __builtin_expect(group != nullptr, 0))
      group->take_mark_back(row - chunk.first_row);
  }
  /// Starts fetching the address that a reader needs first.
  [[gnu::always_inline]] void prefetch(std::uint32_t row) const noexcept {
    const RowChunk& chunk = chunk_with(row);
    if (chunk.group_now() == nullptr)
      chunk.prefetch(row);
    else
      __builtin_prefetch(chunk.probe_address(row));
  }
  /// The same without a transaction. A group may go away meanwhile, so its rows are left out.
  void prefetch_in_chunk(std::uint32_t row) const noexcept {
    const RowChunk& chunk = chunk_with(row);
    if (chunk.group_now() == nullptr) chunk.prefetch(row);
  }
  [[gnu::always_inline]] const void* probe_address(std::uint32_t row) const noexcept {
    return chunk_with(row).probe_address(row);
  }

  /// For rows in chunks only.
  /// The row with an MVCC entry at its beginning; its layout says where its cells are.
  std::byte* address(std::uint32_t row) const noexcept { return chunk_with(row).address(row); }
  const columns::RowLayout& layout(std::uint32_t row) const noexcept {
    return *chunk_with(row).layout;
  }

  /// The rows of a chunk, for scans.
  struct ChunkView {
    const std::byte* rows = nullptr;  ///< the first one
    const columns::RowLayout* layout = nullptr;
    std::uint32_t row_bytes = 0;
    std::uint32_t first_row = 0;
    std::uint32_t row_count = 0;
    const std::uint64_t* used_parts = nullptr;  ///< as RowChunk::used_parts
    SeenParts* seen = nullptr;                  ///< null: read the stamps

    const std::byte* row(std::uint32_t i) const noexcept { return layout->row_at(rows, i); }
    /// Whether no transaction has ever written one of these rows, at least one, since the chunk was
    /// made or emptied. Ask after the snapshot was taken.
    bool is_unused(std::uint32_t first, std::uint32_t count) const noexcept {
      const std::uint64_t parts = RowChunk::parts(first, count);
      return (__atomic_load_n(used_parts, __ATOMIC_ACQUIRE) & parts) == 0;
    }
  };
  /// Gives a row that no reader can reach the stamps of a transaction's new row.
  void begin_row(std::uint32_t row, mvcc::Stamp tag) noexcept {
    RowChunk& chunk = chunks_in_dram_[geometry_.chunk_of(row)];
    chunk.note_used(row);
    auto& version = *reinterpret_cast<mvcc::VersionLayout*>(chunk.address(row));
    mvcc::store_stamp(version.deleted, mvcc::kNoStamp);
    mvcc::store_stamp(version.created, tag);
    if (__builtin_expect(chunk.is_in_columns, 0))
      seen_.note_tag(geometry_.chunk_of(row), row - chunk.first_row);
  }
  /// `index` must be below chunk_count(). Leaves out rows from `rows_limit` on, an earlier
  /// rows_end(). `for_query`: with SeenParts, which may not be ready yet, for a full chunk in
  /// columns.
  ChunkView chunk(std::size_t index, std::uint32_t rows_limit, bool for_query = false) const;

  /// The row's previous version in this process's life, kNoRow if none. Set it before an index
  /// publishes the row.
  std::uint32_t previous(std::uint32_t row) const noexcept;
  void set_previous(std::uint32_t row, std::uint32_t previous);
  void forget_previous(std::uint32_t row) noexcept;
  /// Starts fetching the addresses that a writer of the unused row will store to.
  void prefetch_for_writing(std::uint32_t row) const noexcept {
    const RowChunk& chunk = chunk_with(row);
    __builtin_prefetch(address(row), 1);
    if (__builtin_expect(chunk.is_in_columns, 0)) chunk.layout_now()->prefetch_parts(address(row));
    if (const std::uint32_t* links = __atomic_load_n(&chunk.previous, __ATOMIC_ACQUIRE);
        links != nullptr)
      __builtin_prefetch(&links[row - chunk.first_row], 1);
  }

  /// The layout of rows granted from now on; null before the first chunk.
  const columns::RowLayout* current_layout() const noexcept {
    note_read(SharedWord::kRowGrant, &current_layout_);
    return current_layout_.load(std::memory_order_acquire);
  }
  /// Refills `range` from the end of the table. `bits` is the least width of each column's cell.
  /// The cells have the columns' newest editions, which may be newer than those the caller knows.
  /// Fails with kOutOfSpace (pool full, or 2^32 rows), kBusy (the delta is full).
  Status grant(std::span<const std::uint8_t> bits, RowRange& range, pmem::Persister& persister);

  /// Rows below it may be in use.
  std::uint32_t rows_end() const noexcept { return next_row_.load(std::memory_order_acquire); }
  std::uint32_t first_row_of(std::size_t chunk) const noexcept {
    return static_cast<std::uint32_t>(geometry_.first_of(chunk));
  }
  std::uint32_t rows_of(std::size_t chunk) const noexcept {
    return static_cast<std::uint32_t>(rows_in(chunk));
  }
  /// Defined for any row id, even if there is no such chunk.
  std::size_t chunk_of(std::uint32_t row) const noexcept { return geometry_.chunk_of(row); }
  /// The group that the row is in; null when it is in a chunk.
  const RowGroup* group_with(std::uint32_t row) const noexcept {
    return chunk_with(row).group_now();
  }
  std::uint32_t end_of_chunk_with(std::uint32_t row) const noexcept {
    return static_cast<std::uint32_t>(geometry_.first_of(geometry_.chunk_of(row) + 1));
  }
  /// Visits every row group; none goes away meanwhile.
  void for_each_group(FunctionRef<void(const RowGroup&)> visit) const;
  /// Null: the chunk has rows side by side. Call it in a transaction, or while the merge is held
  /// off.
  RowGroup* group(std::size_t chunk) const noexcept { return chunks_in_dram_[chunk].group_now(); }
  std::size_t chunk_count() const noexcept { return chunk_count_.load(std::memory_order_acquire); }
  /// Bytes of one chunk or group in the pool, with MVCC entries.
  std::uint64_t bytes_of_chunk(std::size_t chunk) const noexcept;
  /// Where the chunk, or its group, lies in the pool. The merge calls it, so the chunk stays there;
  /// writers may append chunks meanwhile.
  std::uint64_t offset_of_chunk(std::size_t chunk) const;
  std::uint64_t chunk_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  /// Bytes of the chunks that are not groups.
  std::uint64_t delta_bytes() const noexcept {
    return delta_bytes_.load(std::memory_order_relaxed);
  }
  /// When the delta has this many bytes, no chunk is added: a caller that needs one gets kBusy. 0:
  /// no bound.
  std::uint64_t delta_bytes_max() const noexcept {
    return delta_bytes_max_.load(std::memory_order_relaxed);
  }
  void set_delta_bytes_max(std::uint64_t bytes) noexcept {
    delta_bytes_max_.store(bytes, std::memory_order_relaxed);
  }
  /// For the shape of rows in chunks that are begun from now on.
  RowLayouts& layouts() noexcept { return layouts_; }
  bool is_delta_full() const noexcept {
    const std::uint64_t most = delta_bytes_max();
    return most != 0 && delta_bytes() >= most;
  }
  std::size_t dram_bytes() const noexcept {
    return previous_bytes_.load(std::memory_order_relaxed) + seen_.bytes();
  }
  void release_all();
  /// Opening: adds chunks and groups, the newest first.
  void add_pages(pmem::WarmList& pages) const;

  // ------------------------------------------------------------------- the merge: row_store_merge

  /// The layout of new rows written at this id; null: none may be, as the id is in a group or in a
  /// frozen chunk, or its chunk was emptied or thawed after `checked_at`.
  const columns::RowLayout* layout_to_write(std::uint32_t row,
                                            std::uint64_t checked_at = ~std::uint64_t{
                                                0}) const noexcept {
    const RowChunk& chunk = chunk_with(row);
    if (chunk.is_frozen() || chunk.group_now() != nullptr ||
        __atomic_load_n(&chunk.emptied_at, __ATOMIC_ACQUIRE) > checked_at)
      return nullptr;
    const bool was_thawed = __atomic_load_n(&chunk.was_thawed, __ATOMIC_RELAXED);
    if (__builtin_expect(was_thawed, 0) && thawed_.is_after(chunk.first_row, checked_at))
      return nullptr;
    return chunk.layout_now();
  }
  /// Directs new rows to later chunks, so that those before can be frozen. The rest of the chunk
  /// that was being filled stays unused; so do chunks made ahead with cells of former editions. All
  /// chunks behind it count as full, too, if there are more than one: a transaction that was undone
  /// leaves them. Returns the first chunk, of those that are full now, that no row was ever in.
  std::size_t close_tail();
  /// The same after a column has changed; but a chunk that is being filled with rows of the present
  /// editions goes on.
  void close_former_tail();
  /// Rows of the present editions that chunks have space for behind rows_end().
  std::uint64_t rows_ahead() const noexcept;
  /// Returns `end`: chunks [0, end) are no longer being filled.
  std::size_t full_chunks() const noexcept;
  /// Once all transactions that are open now have ended, no row of the chunk is begun.
  void freeze(std::size_t chunk) noexcept;
  bool is_frozen(std::size_t chunk) const noexcept { return chunks_in_dram_[chunk].is_frozen(); }
  /// Rows of a frozen chunk, no group, may be begun again. Its free rows are given out as new ones:
  /// lists of them from before no longer hold. `now` is that of replace_chunk.
  void thaw(std::size_t chunk, FunctionRef<std::uint64_t()> now);

  /// Announces, while it exists, that the chunk's MVCC entries are about to move: a transaction
  /// that locks one meanwhile takes the lock back and waits (RowChunk::is_still).
  class Move {
   public:
    Move(RowStore& rows, std::size_t chunk) noexcept;
    ~Move();
    Move(const Move&) = delete;
    Move& operator=(const Move&) = delete;

   private:
    RowChunk& chunk_;
  };
  /// Waits until the row's entry is not moving.
  void wait_for_move(std::uint32_t row) const noexcept;

  /// Replaces a chunk by the group, or the empty chunk of rows, in `extent`, which is written and
  /// flushed through `persister`. Call it inside a Move. Durable on return. `now` gives a
  /// time-stamp above that of any row or snapshot that was in the old chunk, and above all that it
  /// gave before. It is called while no other chunk is replaced: chunks are emptied in the order of
  /// these time-stamps. Fails with kCorrupt (`extent` does not hold what it should).
  Status replace_chunk(std::size_t chunk, pmem::Extent extent, FunctionRef<std::uint64_t()> now,
                       pmem::Persister& persister);
  /// When the row's id became unused, with all others of its chunk; 0: never. An earlier note that
  /// the row is dead or free no longer holds.
  std::uint64_t emptied_at(std::uint32_t row) const noexcept {
    return __atomic_load_n(&chunk_with(row).emptied_at, __ATOMIC_ACQUIRE);
  }
  /// The last time that a chunk was emptied or thawed. It only grows: a caller that has seen it has
  /// seen emptied_at of all chunks that were emptied until then.
  std::uint64_t last_emptied_at() const noexcept {
    return last_emptied_at_.load(std::memory_order_acquire);
  }
  /// Makes an empty chunk for replace_chunk, flushed; its rows have the layout `layout`.
  Result<pmem::Extent> make_chunk(std::size_t chunk, const columns::RowLayout& layout,
                                  pmem::Persister& persister) {
    return headers_.make(chunk, layout, persister);
  }
  /// Frees what replace_chunk has replaced. Call it when no transaction is left that began before.
  void release_replaced();
  bool has_replaced() const;
  /// Bytes in the pool of what replace_chunk has replaced and release_replaced has not freed yet.
  std::uint64_t replaced_bytes() const;
  /// Frees what groups have in DRAM for former editions of columns. Call it when no reader is left
  /// that found a column before it changed.
  void release_former();

 private:
  struct Replaced {
    pmem::Extent extent;
    std::uint32_t* previous;
    std::unique_ptr<RowGroup> group;
    std::unique_ptr<SeenParts> seen;
  };

  std::uint64_t bytes_of(const RowChunk& chunk, std::size_t index) const noexcept;
  Result<std::uint64_t> load_group(std::size_t index, std::uint64_t offset, bool claims,
                                   std::unique_ptr<RowGroup>& group);

  std::uint64_t rows_in(std::size_t chunk) const noexcept { return geometry_.elements_in(chunk); }

  Result<std::uint64_t> load_chunk(std::size_t index, std::uint64_t offset);
  Status check_header_of(const RowChunk& chunk, std::size_t index) const;
  void find_tail() noexcept;
  void close_tail_locked() noexcept;
  bool is_of_former(std::size_t chunk) const noexcept;
  void put_chunk(std::size_t index, std::uint64_t offset, const columns::RowLayout* layout);
  void put_group(std::size_t index, std::unique_ptr<RowGroup> group);
  void keep_reserve() const;
  Status add_chunk(std::size_t expected_count, const columns::RowLayout& layout,
                   pmem::Persister& persister);
  Status widen(std::span<const std::uint8_t> bits, pmem::Persister& persister);

  pmem::Pool& pool_;
  TableLayout& layout_;
  const columns::ColumnArray& columns_;
  std::string owner_;
  columns::ChunkGeometry geometry_;
  RowChunkHeaders headers_;
  RowLayouts layouts_;
  StableArray<RowChunk> chunks_in_dram_;
  mutable SeenChunks seen_;
  std::atomic<const columns::RowLayout*> current_layout_{nullptr};
  std::atomic<std::uint64_t> row_limit_{0};
  std::atomic<std::size_t> chunk_count_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> delta_bytes_{0};
  std::atomic<std::uint64_t> delta_bytes_max_{0};
  std::atomic<std::size_t> previous_bytes_{0};
  std::atomic<std::uint64_t> last_emptied_at_{0};
  ThawedChunks thawed_;
  mutable Mutex grow_mutex_;  // protects chunk_list_, layouts_ and replaced_
  pmem::ChunkList chunk_list_;
  std::vector<Replaced> replaced_;
  // Far from the members that writers read: those change once per chunk, this one every 64 rows.
  std::atomic<std::uint32_t> next_row_{0};
  Mutex tail_mutex_;  // protects next_row_ and current_layout_; rank: before grow_mutex_
};

}  // namespace flugs::engine
