#include "tables/rows/row_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "pmem/space/warm_list.h"
#include "tables/rows/space_reserve.h"

namespace flugs::engine {

namespace {

// Rows granted at once: after a crash, a slot leaves at most this many unused rows behind.
constexpr std::uint32_t kGrantedRows = 64;
// Chunks of 64 KB to 4 MB: 100 M rows of 32 bytes need 770 of them. Pools with small segments have
// smaller chunks.
constexpr std::uint64_t kFirstChunkBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargestChunkBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kChunkBytesMin = std::uint64_t{2} << 10;
static_assert(kChunkBytesMin <= kFirstChunkBytes && kFirstChunkBytes <= kLargestChunkBytes);
// A small table has no chunk made ahead, as its widths may still change.
constexpr std::size_t kChunksBeforeAhead = 4;

// The most chunks that rows can fill: address space for more would never be used.
std::size_t chunks_max(const columns::ChunkGeometry& geometry) noexcept {
  return std::min(geometry.chunk_of(kNoRow) + 1, pmem::ChunkListLayout::kChunksMax);
}

}  // namespace

RowStore::RowStore(pmem::Pool& pool, TableLayout& layout, const columns::ColumnArray& columns,
                   std::string owner)
    : pool_(pool),
      layout_(layout),
      columns_(columns),
      owner_(std::move(owner)),
      geometry_{layout.first_chunk_rows_log2, layout.largest_chunk_rows_log2},
      headers_(pool, layout.table_id, columns, owner_, geometry_),
      layouts_(columns),
      chunks_in_dram_(chunks_max(geometry_)),
      seen_(chunks_max(geometry_)),
      chunk_list_(pool, layout.row_chunks, owner_, pmem::ChunkList::Chunks::kRows) {}

RowStore::~RowStore() {
  for (std::size_t i = 0; i < chunk_count(); ++i) {
    std::free(chunks_in_dram_[i].previous);
    delete chunks_in_dram_[i].group;
  }
  for (const Replaced& replaced : replaced_) std::free(replaced.previous);
}

columns::ChunkGeometry RowStore::geometry_for(std::uint32_t row_bytes,
                                              std::uint64_t segment_bytes) {
  FLUGS_CHECK(row_bytes != 0);
  const auto log2_of_rows = [&](std::uint64_t bytes) {
    unsigned log2 = 4;
    while ((std::uint64_t{2} << log2) * row_bytes <= bytes) ++log2;
    return log2;
  };
  return {log2_of_rows(std::clamp(segment_bytes / 64, kChunkBytesMin, kFirstChunkBytes)),
          log2_of_rows(std::clamp(segment_bytes / 16, kChunkBytesMin, kLargestChunkBytes))};
}

// Update layouts before publishing the column: a reader that knows the column finds it in every
// layout.
void RowStore::ColumnsChange::add(columns::ColumnArray& columns,
                                  std::unique_ptr<columns::Column> column) {
  rows_.layouts_.add_constant(*column);
  columns.add(std::move(column));
}

// Update groups before publishing the column: readers that see it rely on the groups.
void RowStore::ColumnsChange::change(columns::ColumnArray& columns, std::size_t i,
                                     std::unique_ptr<columns::Column> next, std::uint16_t edition) {
  std::vector<RowGroup*> groups;
  for (std::size_t chunk = 0; chunk < rows_.chunk_count(); ++chunk)
    if (RowGroup* group = rows_.group(chunk); group != nullptr) groups.push_back(group);
  for (const Replaced& replaced : rows_.replaced_)
    if (replaced.group != nullptr) groups.push_back(replaced.group.get());
  for (RowGroup* group : groups) group->expect_change();
  columns.change(i, std::move(next), edition);
  for (RowGroup* group : groups) group->note_change();
}

bool RowStore::has_values_of(std::size_t column, std::uint16_t edition,
                             bool in_groups) const noexcept {
  for (std::size_t i = 0; i < chunk_count(); ++i) {
    const RowChunk& chunk = chunks_in_dram_[i];
    if (const RowGroup* group = chunk.group_now(); group == nullptr) {
      if (chunk.layout->bits(column) != 0 && chunk.layout->edition(column) == edition) return true;
    } else if (in_groups && column < group->column_count() && group->edition(column) == edition &&
               group->column(column).null_count() != group->stored_rows() &&
               !group->column(column).owns_texts()) {
      return true;
    }
  }
  return false;
}

bool RowStore::is_read_as(std::size_t column, std::uint16_t edition,
                          bool in_groups) const noexcept {
  for (std::size_t i = 0; i < chunk_count(); ++i) {
    const RowChunk& chunk = chunks_in_dram_[i];
    if (chunk.group_now() != nullptr) continue;
    const columns::RowLayout& layout = *chunk.layout_now();
    if (column >= layout.cells().size() && layout.edition(column) == edition) return true;
  }
  return has_values_of(column, edition, in_groups);
}

bool RowStore::names_edition(std::size_t column, std::uint16_t edition,
                             bool in_groups) const noexcept {
  for (std::size_t i = 0; in_groups && i < chunk_count(); ++i)
    if (const RowGroup* group = chunks_in_dram_[i].group_now();
        group != nullptr && column < group->column_count() && group->edition(column) == edition)
      return true;
  return is_read_as(column, edition, false);
}

// A chunk that still grows, or has fewer rows than a part, gets no SeenParts.
RowStore::ChunkView RowStore::chunk(std::size_t index, std::uint32_t rows_limit,
                                    bool for_query) const {
  FLUGS_DCHECK(index < chunk_count());
  const RowChunk& chunk = chunks_in_dram_[index];
  const std::uint64_t end = geometry_.first_of(index + 1);
  const std::uint64_t limit = std::min<std::uint64_t>(end, rows_limit);
  ChunkView view{chunk.first_address(),
                 chunk.layout,
                 chunk.row_bytes,
                 chunk.first_row,
                 limit <= chunk.first_row ? 0 : static_cast<std::uint32_t>(limit - chunk.first_row),
                 &chunk.used_parts};
  if (for_query && chunk.is_in_columns && limit == end && rows_in(index) >= SeenParts::kRows)
    view.seen = &seen_.for_scan(index, rows_of(index));
  return view;
}

void RowStore::put_chunk(std::size_t index, std::uint64_t offset,
                         const columns::RowLayout* layout) {
  FLUGS_CHECK(index == chunk_count() && layout != nullptr);
  FLUGS_CHECK(geometry_.first_of(index + 1) <= kNoRow);
  RowChunk& chunk = chunks_in_dram_.begin(index);
  chunk.first_row = static_cast<std::uint32_t>(geometry_.first_of(index));
  chunk.layout = layout;
  headers_.lead_to_rows(chunk, offset, *layout);
  bytes_.fetch_add(headers_.chunk_bytes(index, *layout), std::memory_order_relaxed);
  delta_bytes_.fetch_add(headers_.chunk_bytes(index, *layout), std::memory_order_relaxed);
  chunk_count_.store(index + 1, std::memory_order_release);
  row_limit_.store(geometry_.first_of(index + 1), std::memory_order_release);
}

Result<std::uint64_t> RowStore::load_chunk(std::size_t index, std::uint64_t offset) {
  if (geometry_.first_of(index + 1) > kNoRow)
    return headers_.corrupt(index, offset, "row ids up to", kNoRow, geometry_.first_of(index + 1));
  const columns::RowLayout* layout = nullptr;
  const std::uint16_t tag = chunk_list_.tag(index);
  const bool is_nothing = offset == pmem::ChunkListLayout::kNoExtent;
  if (is_nothing && tag != headers_.tag_of_nothing(index))
    return headers_.corrupt(index, offset, "tag", headers_.tag_of_nothing(index), tag);
  if (tag != 0 && !is_nothing) {
    layout = index == 0 ? nullptr : chunks_in_dram_[index - 1].layout_now();
    if (layout == nullptr)
      return headers_.corrupt(index, offset, "tag, as no chunk of rows is before it", 0, tag);
    if (tag != headers_.tag(index, offset, *layout))
      return headers_.corrupt(index, offset, "tag", headers_.tag(index, offset, *layout), tag);
  } else if (is_nothing || RowGroup::is_group(pool_, offset)) {
    std::unique_ptr<RowGroup> group;
    Result<std::uint64_t> bytes = load_group(index, offset, true, group);
    if (bytes.ok()) put_group(index, std::move(group));
    return bytes;
  } else {
    Result<columns::RowLayout> found = headers_.read(index, offset);
    if (!found.ok()) return std::move(found).status();
    layout = layouts_.shared(*std::move(found));
  }
  const std::uint64_t bytes = headers_.chunk_bytes(index, *layout);
  const std::uint64_t pool_bytes = pool_.medium().bytes();
  if (bytes > pool_bytes || offset > pool_bytes - bytes)
    return headers_.corrupt(index, offset, "chunk inside pool, pool bytes", pool_bytes,
                            offset + bytes);
  put_chunk(index, offset, layout);
  chunks_in_dram_[index].used_parts = ~std::uint64_t{0};
  if (tag == 0) chunks_in_dram_[index].set_checked();
  return bytes;
}

Status RowStore::check_header(std::uint32_t row) const {
  const std::size_t index = geometry_.chunk_of(row);
  const RowChunk& chunk = chunks_in_dram_[index];
  if (chunk.is_checked()) return {};
  Status status = check_header_of(chunk, index);
  if (status.ok()) chunk.set_checked();
  return status;
}

Status RowStore::check_header_of(const RowChunk& chunk, std::size_t index) const {
  const std::uint64_t offset = headers_.offset_of(chunk);
  const Result<columns::RowLayout> found = headers_.read(index, offset);
  if (!found.ok()) return found.status();
  if (!(*found == *chunk.layout))
    return headers_.corrupt(index, offset,
                            "cells like those of the chunk before it, bytes of a row",
                            chunk.row_bytes, found->row_bytes());
  return {};
}

Result<std::uint64_t> RowStore::load_group(std::size_t index, std::uint64_t offset, bool claims,
                                           std::unique_ptr<RowGroup>& group) {
  const RowGroupIdentity identity{layout_.table_id, static_cast<std::uint32_t>(index),
                                  rows_of(index)};
  if (offset == pmem::ChunkListLayout::kNoExtent) {
    group = RowGroup::without_rows(pool_, identity, columns_, owner_);
    return group->bytes();
  }
  Result<std::unique_ptr<RowGroup>> loaded =
      RowGroup::load(pool_, offset, identity, columns_, owner_, claims);
  if (!loaded.ok()) return std::move(loaded).status();
  group = *std::move(loaded);
  return group->bytes();
}

void RowStore::put_group(std::size_t index, std::unique_ptr<RowGroup> group) {
  FLUGS_CHECK(index == chunk_count() && group != nullptr);
  RowChunk& chunk = chunks_in_dram_.begin(index);
  chunk.first_row = first_row_of(index);
  chunk.group = group.release();
  bytes_.fetch_add(chunk.group->bytes(), std::memory_order_relaxed);
  chunk_count_.store(index + 1, std::memory_order_release);
  row_limit_.store(geometry_.first_of(index + 1), std::memory_order_release);
}

Status RowStore::load() {
  Status status = chunk_list_.load(
      [&](std::size_t index, std::uint64_t offset) { return load_chunk(index, offset); });
  find_tail();
  if (status.ok()) keep_reserve();
  // Check the chunk with the last row, and those behind it: rows will be granted there.
  const std::uint32_t end = rows_end();
  for (std::size_t i = end == 0 ? 0 : geometry_.chunk_of(end - 1); status.ok() && i < chunk_count();
       ++i)
    if (chunks_in_dram_[i].group_now() == nullptr) status = check_header(first_row_of(i));
  return status;
}

// If both stamps are 0, the row was never granted, or never got its stamps. The unused end of the
// table is at most one chunk made ahead and the rest of the one before, so the scan is short.
void RowStore::find_tail() noexcept {
  std::uint32_t end = static_cast<std::uint32_t>(row_limit_.load(std::memory_order_relaxed));
  while (end > 0 && group(geometry_.chunk_of(end - 1)) == nullptr &&
         version(end - 1).created == 0 && version(end - 1).deleted == 0)
    --end;
  next_row_.store(end, std::memory_order_relaxed);
  if (chunk_count() == 0) return;
  // Null if that is a group: then the next row begins a chunk.
  const std::size_t chunk = std::min(geometry_.chunk_of(end), chunk_count() - 1);
  current_layout_.store(chunks_in_dram_[chunk].layout, std::memory_order_relaxed);
}

std::uint32_t RowStore::previous(std::uint32_t row) const noexcept {
  const RowChunk& chunk = chunk_with(row);
  std::uint32_t* links = __atomic_load_n(&chunk.previous, __ATOMIC_ACQUIRE);
  if (links == nullptr) return kNoRow;
  note_read(SharedWord::kRowLinks, &links[row - chunk.first_row]);
  return __atomic_load_n(&links[row - chunk.first_row], __ATOMIC_RELAXED);
}

void RowStore::set_previous(std::uint32_t row, std::uint32_t previous) {
  const std::size_t index = geometry_.chunk_of(row);
  RowChunk& chunk = chunks_in_dram_[index];
  std::uint32_t* links = __atomic_load_n(&chunk.previous, __ATOMIC_ACQUIRE);
  if (links == nullptr) {
    // Written at once: a page that is read before it is written is mapped twice, and the second
    // mapping interrupts all other processors.
    const std::size_t bytes = rows_in(index) * sizeof(std::uint32_t);
    auto* fresh = static_cast<std::uint32_t*>(std::malloc(bytes));
    FLUGS_CHECK(fresh != nullptr);
    std::fill_n(fresh, rows_in(index), kNoRow);
    if (__atomic_compare_exchange_n(&chunk.previous, &links, fresh, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
      links = fresh;
      previous_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    } else {
      std::free(fresh);
    }
  }
  note_write(SharedWord::kRowLinks, &links[row - chunk.first_row]);
  __atomic_store_n(&links[row - chunk.first_row], previous, __ATOMIC_RELAXED);
}

void RowStore::forget_previous(std::uint32_t row) noexcept {
  const RowChunk& chunk = chunk_with(row);
  std::uint32_t* links = __atomic_load_n(&chunk.previous, __ATOMIC_ACQUIRE);
  if (links == nullptr) return;
  note_write(SharedWord::kRowLinks, &links[row - chunk.first_row]);
  __atomic_store_n(&links[row - chunk.first_row], kNoRow, __ATOMIC_RELAXED);
}

// Protocol row_chunk. Rows of the chunk may be granted after step 3.
//   step  store                       made durable by       power cut just after it: recovery
//   1     zero rows                   chunk_list/3          chunk unreachable: free space
//   2     header with cell layouts    chunk_list/3          chunk unreachable: free space
//   3     pointer to the chunk, and   chunk_list/4          finds only unused rows in it
//         in the same word its tag
// Must hold:  1 and 2 before 3, else noise would read as rows.
Status RowStore::add_chunk(std::size_t expected_count, const columns::RowLayout& layout,
                           pmem::Persister& persister) {
  const std::lock_guard guard(grow_mutex_);
  if (chunk_list_.count() != expected_count) return {};  // another thread did
  const std::size_t index = expected_count;
  if (geometry_.first_of(index + 1) > kNoRow)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: {}: all {} rows are in use", pool_.path(), owner_,
                              row_limit_.load(std::memory_order_relaxed)));
  // The call that planned it did not know of a column that every chunk must have.
  if (!columns_.may_lack(layout.cells().size())) return {};
  if (layout.editions() != columns_.editions()) return {};  // nor of another column's edition
  if (is_delta_full())
    return Status(StatusCode::kBusy,
                  fmt::format("{}: the delta has {} bytes, allowed are {}: merge the table", owner_,
                              delta_bytes(), delta_bytes_max()));
  Result<pmem::Extent> extent = headers_.make(index, layout, persister);
  if (!extent.ok()) return std::move(extent).status();
  const columns::RowLayout* before = index == 0 ? nullptr : chunks_in_dram_[index - 1].layout_now();
  const bool is_like_before =
      before != nullptr && chunks_in_dram_[index - 1].group_now() == nullptr && *before == layout;
  const std::uint16_t tag = is_like_before ? headers_.tag(index, extent->offset, layout) : 0;
  if (Status s = chunk_list_.append(*extent, persister, tag); !s.ok()) {
    persister.fence("row_chunk/2");  // no flush may stay behind unfenced
    pool_.allocator().release(*extent);
    return s;
  }
  put_chunk(index, extent->offset, layouts_.shared(layout));
  chunks_in_dram_[index].set_checked();
  keep_reserve();
  return {};
}

// Later chunks are as large as the ones before them, or larger. A merge makes groups of chunks.
void RowStore::keep_reserve() const {
  std::uint64_t largest = 0;
  for (std::size_t chunk = chunk_count(); chunk > 0 && largest == 0; --chunk)
    if (const columns::RowLayout* layout = chunks_in_dram_[chunk - 1].layout_now();
        layout != nullptr)
      largest = headers_.chunk_bytes(chunk - 1, *layout);
  pool_.allocator().keep_reserve(reserve_for(pool_.medium().bytes(), largest));
}

// Called with tail_mutex_ held. The rest of the chunk that is being filled stays unused. Chunks
// behind it, which a crash left unused, are taken if they are wide enough. If not, a new chunk is
// at least as wide as they are, because rows continue through all of them.
Status RowStore::widen(std::span<const std::uint8_t> bits, pmem::Persister& persister) {
  const std::uint32_t next_row = next_row_.load(std::memory_order_relaxed);
  std::size_t index = next_row == 0 ? 0 : geometry_.chunk_of(next_row - 1) + 1;
  const auto can_take = [&](std::size_t chunk) {
    const columns::RowLayout* layout = chunks_in_dram_[chunk].layout_now();
    return layout != nullptr && layout_to_write(first_row_of(chunk)) != nullptr &&
           layouts_.fits(*layout, bits);
  };
  while (index < chunk_count() && !can_take(index)) ++index;
  if (index == chunk_count()) {
    const columns::RowLayout* last = index == 0 ? nullptr : chunks_in_dram_[index - 1].layout_now();
    Result<columns::RowLayout> layout = layouts_.roomy(layouts_.widths_after(last, bits));
    if (!layout.ok()) return std::move(layout).status();
    if (Status s = add_chunk(index, *layout, persister); !s.ok()) return s;
    // Columns have changed since the layout was planned, so no chunk was made. The caller plans
    // again.
    if (index >= chunk_count()) return {};
    if (!can_take(index)) return {};  // another thread's, made ahead
  }
  current_layout_.store(chunks_in_dram_[index].layout, std::memory_order_release);
  next_row_.store(chunks_in_dram_[index].first_row, std::memory_order_release);
  return {};
}

Status RowStore::grant(std::span<const std::uint8_t> bits, RowRange& range,
                       pmem::Persister& persister) {
  bool ahead = false;
  {
    const std::lock_guard guard(tail_mutex_);
    std::uint32_t next = 0;
    for (;;) {
      while (current_layout() == nullptr || !layouts_.fits(*current_layout(), bits))
        if (Status s = widen(bits, persister); !s.ok()) return s;
      next = next_row_.load(std::memory_order_relaxed);
      if (next < row_limit_.load(std::memory_order_relaxed)) break;
      // Makes no chunk if a column has changed meanwhile; then the loop tries again.
      if (Status s = add_chunk(chunk_count(), *current_layout(), persister); !s.ok()) return s;
    }
    const std::size_t chunk = geometry_.chunk_of(next);
    const columns::RowLayout* layout = chunks_in_dram_[chunk].layout;
    FLUGS_CHECK(layout != nullptr);
    FLUGS_DCHECK(layout_to_write(next) != nullptr);
    current_layout_.store(layout, std::memory_order_release);
    const auto chunk_end = static_cast<std::uint32_t>(geometry_.first_of(chunk + 1));
    range = {next, std::min(next + kGrantedRows, chunk_end), layout};
    note_write(SharedWord::kRowGrant, &tail_mutex_);
    note_write(SharedWord::kRowGrant, &next_row_);
    next_row_.store(range.end, std::memory_order_release);
    ahead = chunk + 1 == chunk_count() && chunk >= kChunksBeforeAhead &&
            chunk_end - next <= rows_in(chunk) / 2;
  }
  if (ahead) {
    // No row needs this chunk yet: if it fails, the call that needs it gets the error.
    const Status ignored = add_chunk(geometry_.chunk_of(range.next) + 1, *range.layout, persister);
    static_cast<void>(ignored);
  }
  return {};
}

std::uint64_t RowStore::bytes_of(const RowChunk& chunk, std::size_t index) const noexcept {
  const RowGroup* group = chunk.group_now();
  return group != nullptr ? group->bytes() : headers_.chunk_bytes(index, *chunk.layout);
}

std::uint64_t RowStore::bytes_of_chunk(std::size_t index) const noexcept {
  const RowChunk& chunk = chunks_in_dram_[index];
  const RowGroup* group = chunk.group_now();
  return bytes_of(chunk, index) + (group != nullptr ? group->version_bytes() : 0);
}

void RowStore::add_pages(pmem::WarmList& pages) const {
  for (std::size_t i = chunk_count_.load(std::memory_order_relaxed); i > 0; --i) {
    const RowChunk& chunk = chunks_in_dram_[i - 1];
    if (bytes_of(chunk, i - 1) == 0) continue;
    pages.add(chunk.group_now() != nullptr ? pmem::Heat::kGroups : pmem::Heat::kRows,
              {chunk_list_.offset(i - 1), bytes_of(chunk, i - 1)});
  }
}

void RowStore::release_all() {
  release_replaced();
  const std::lock_guard guard(grow_mutex_);
  chunk_list_.release_all([&](std::size_t index, std::uint64_t) {
    RowChunk& chunk = chunks_in_dram_[index];
    std::free(std::exchange(chunk.previous, nullptr));
    if (RowGroup* group = chunk.group_now(); group != nullptr) group->release_blocks();
    return bytes_of(chunk, index);
  });
  previous_bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace flugs::engine
