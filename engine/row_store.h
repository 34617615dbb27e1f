#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "columns/chunk_geometry.h"
#include "columns/column.h"
#include "columns/row_layout.h"
#include "columns/stable_array.h"
#include "engine/catalog_layout.h"
#include "flugs/status.h"
#include "mvcc/stamps.h"
#include "pmem/chunk_list.h"
#include "pmem/mutex.h"
#include "pmem/pool.h"

namespace flugs::engine {

/// No row: the end of a chain of versions.
inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

/// Unused rows side by side, all of one chunk, in the hands of one transaction slot.
struct RowRange {
  std::uint32_t next = 0;
  std::uint32_t end = 0;
  const columns::RowLayout* layout = nullptr;
};

/// The rows of a table: append-only chunks that never move. A row is its MVCC entry and the cells
/// of all columns side by side (decision 0002). Rows are granted in small ranges, then written by
/// their owner alone; a chunk for the rows to come is made ahead of need.
///
/// Each chunk has its own widths of cells. When a value needs a wider one, a new chunk begins;
/// widths never shrink, so that what stood in an older chunk fits a newer one.
///
/// Thread-safety: any thread, except load.
/// Source: SOFORT (DaMoN 2014), section 2; append-only without the paper's blocking resize.
class RowStore {
 public:
  RowStore(pmem::Pool& pool, TableLayout& layout, std::string owner);
  ~RowStore();

  /// How many rows the chunks of a new table have.
  static columns::ChunkGeometry geometry_for(std::uint32_t row_bytes, std::uint64_t segment_bytes);

  /// Opening: claims and checks the chunks, then finds where unused rows begin.
  Status load(std::span<const std::unique_ptr<columns::Column>> columns);

  bool exists(std::uint32_t row) const noexcept {
    return row < row_limit_.load(std::memory_order_acquire);
  }
  /// `row` must exist.
  std::byte* address(std::uint32_t row) const noexcept {
    const Chunk& chunk = chunk_with(row);
    return reinterpret_cast<std::byte*>(chunk.row_zero + std::size_t{row} * chunk.row_bytes);
  }
  mvcc::VersionLayout& version(std::uint32_t row) const noexcept {
    return *reinterpret_cast<mvcc::VersionLayout*>(address(row));
  }
  const columns::RowLayout& layout(std::uint32_t row) const noexcept {
    return *chunk_with(row).layout;
  }

  /// The row's previous version in this process's life, kNoRow if none. To be set before the row
  /// is published through an index.
  std::uint32_t previous(std::uint32_t row) const noexcept;
  void set_previous(std::uint32_t row, std::uint32_t previous);
  void forget_previous(std::uint32_t row) noexcept;
  /// Starts fetching what a writer of the unused row will store to.
  void prefetch_for_writing(std::uint32_t row) const noexcept {
    const Chunk& chunk = chunk_with(row);
    __builtin_prefetch(address(row), 1);
    if (const std::uint32_t* links = __atomic_load_n(&chunk.previous, __ATOMIC_ACQUIRE);
        links != nullptr)
      __builtin_prefetch(&links[row - chunk.first_row], 1);
  }

  /// The layout of rows granted from now on; null before the first chunk.
  const columns::RowLayout* current_layout() const noexcept {
    return current_layout_.load(std::memory_order_acquire);
  }
  /// Refills `range` from the end of the table. `bits` is the least width of each column's cell.
  /// Fails with kOutOfSpace (pool full, or 2^32 rows).
  Status grant(std::span<const std::uint8_t> bits,
               std::span<const std::unique_ptr<columns::Column>> columns, RowRange& range,
               pmem::Persister& persister);

  /// Rows below it may be in use.
  std::uint32_t rows_end() const noexcept { return next_row_.load(std::memory_order_acquire); }
  std::size_t chunk_count() const noexcept { return chunk_count_.load(std::memory_order_acquire); }
  std::uint64_t chunk_bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  std::size_t dram_bytes() const noexcept {
    return previous_bytes_.load(std::memory_order_relaxed);
  }
  void release_all();

 private:
  struct Chunk {
    std::uintptr_t row_zero;  // where row 0 would stand if all chunks were like this one
    const columns::RowLayout* layout;
    std::uint32_t* previous;  // through std::atomic_ref; made when a row of the chunk is updated
    std::uint32_t row_bytes;
    std::uint32_t first_row;
  };

  const Chunk& chunk_with(std::uint32_t row) const noexcept {
    return chunks_in_dram_[geometry_.chunk_of(row)];
  }
  std::uint64_t rows_in(std::size_t chunk) const noexcept { return geometry_.elements_in(chunk); }
  std::uint64_t chunk_bytes_of(std::size_t chunk, const columns::RowLayout& layout) const noexcept;

  Result<std::uint64_t> load_chunk(std::size_t index, std::uint64_t offset,
                                   std::span<const std::unique_ptr<columns::Column>> columns);
  void find_tail() noexcept;
  const columns::RowLayout* shared(columns::RowLayout layout);
  void put_chunk(std::size_t index, std::uint64_t offset, const columns::RowLayout* layout);
  Status add_chunk(std::size_t expected_count, const columns::RowLayout& layout,
                   pmem::Persister& persister);
  Status widen(std::span<const std::uint8_t> bits,
               std::span<const std::unique_ptr<columns::Column>> columns,
               pmem::Persister& persister);
  static bool fits(const columns::RowLayout& layout, std::span<const std::uint8_t> bits) noexcept;

  pmem::Pool& pool_;
  TableLayout& layout_;
  std::string owner_;
  columns::ChunkGeometry geometry_;
  columns::StableArray<Chunk> chunks_in_dram_;
  std::atomic<const columns::RowLayout*> current_layout_{nullptr};
  std::atomic<std::uint32_t> next_row_{0};
  std::atomic<std::uint64_t> row_limit_{0};
  std::atomic<std::size_t> chunk_count_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::size_t> previous_bytes_{0};
  pmem::Mutex tail_mutex_;  // protects next_row_ and current_layout_; rank: before grow_mutex_
  pmem::Mutex grow_mutex_;  // protects chunk_list_ and layouts_
  pmem::ChunkList chunk_list_;
  std::vector<std::unique_ptr<columns::RowLayout>> layouts_;
};

}  // namespace flugs::engine
