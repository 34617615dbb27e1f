// The merge's work on the chunks of a table: it freezes chunks and replaces them.

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/spin_lock.h"
#include "mvcc/asymmetric_barrier.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

std::size_t RowStore::close_tail() {
  const std::lock_guard guard(tail_mutex_);
  const std::uint32_t next = next_row_.load(std::memory_order_relaxed);
  const std::size_t first_unused = next == 0 ? 0 : geometry_.chunk_of(next - 1) + 1;
  close_tail_locked();
  const std::size_t count = chunk_count();
  const std::uint64_t end = geometry_.first_of(count);
  if (count > first_unused + 1 && end <= kNoRow)
    next_row_.store(static_cast<std::uint32_t>(end), std::memory_order_release);
  return std::min(first_unused, full_chunks());
}

// A writer may have begun a chunk since the column changed: nothing needs to leave that one.
void RowStore::close_former_tail() {
  const std::lock_guard guard(tail_mutex_);
  const std::uint32_t next = next_row_.load(std::memory_order_relaxed);
  if (next == 0) return;
  const std::size_t last = geometry_.chunk_of(next - 1);
  if (group(last) != nullptr || is_of_former(last)) close_tail_locked();
}

// Called with tail_mutex_ held. A chunk that was made ahead before a column changed must take no
// more rows. Behind the tail no merge would reach it, and what its cells' editions own would never
// be freed.
void RowStore::close_tail_locked() noexcept {
  const std::uint32_t next = next_row_.load(std::memory_order_relaxed);
  if (next == 0) return;
  std::size_t chunk = geometry_.chunk_of(next - 1) + 1;
  while (chunk < chunk_count() && (group(chunk) != nullptr || is_of_former(chunk))) ++chunk;
  const std::uint64_t end = geometry_.first_of(chunk);
  if (end <= kNoRow) next_row_.store(static_cast<std::uint32_t>(end), std::memory_order_release);
}

bool RowStore::is_of_former(std::size_t chunk) const noexcept {
  const columns::RowLayout& layout = *chunks_in_dram_[chunk].layout_now();
  return layout.editions() != columns_.editions() || !layouts_.shape().is_of(layout);
}

std::uint64_t RowStore::rows_ahead() const noexcept {
  const std::uint32_t next = next_row_.load(std::memory_order_acquire);
  std::uint64_t rows = 0;
  for (std::size_t chunk = geometry_.chunk_of(next); chunk < chunk_count(); ++chunk) {
    if (layout_to_write(first_row_of(chunk)) == nullptr || is_of_former(chunk)) continue;
    rows += geometry_.first_of(chunk + 1) - std::max<std::uint64_t>(next, first_row_of(chunk));
  }
  return rows;
}

std::size_t RowStore::full_chunks() const noexcept {
  const std::uint32_t next = next_row_.load(std::memory_order_acquire);
  return next == 0 ? 0 : std::min(geometry_.chunk_of(next), chunk_count());
}

void RowStore::freeze(std::size_t chunk) noexcept {
  FLUGS_CHECK(chunk < full_chunks());
  __atomic_store_n(&chunks_in_dram_[chunk].frozen, true, __ATOMIC_SEQ_CST);
}

// Lists that slots have of free rows in the chunk are from before it was frozen.
void RowStore::thaw(std::size_t index, FunctionRef<std::uint64_t()> now) {
  const std::lock_guard guard(grow_mutex_);
  RowChunk& chunk = chunks_in_dram_[index];
  FLUGS_CHECK(chunk.is_frozen() && chunk.group_now() == nullptr);
  FLUGS_CHECK(!__atomic_load_n(&chunk.moving, __ATOMIC_RELAXED));
  const std::uint64_t thawed_at = now();
  FLUGS_CHECK(thawed_at > last_emptied_at_.load(std::memory_order_relaxed));
  thawed_.note(chunk.first_row, thawed_at);
  __atomic_store_n(&chunk.was_thawed, true, __ATOMIC_RELAXED);  // seen with `frozen`
  last_emptied_at_.store(thawed_at, std::memory_order_release);
  __atomic_store_n(&chunk.frozen, false, __ATOMIC_RELEASE);
}

RowStore::Move::Move(RowStore& rows, std::size_t chunk) noexcept
    : chunk_(rows.chunks_in_dram_[chunk]) {
  FLUGS_CHECK(chunk < rows.chunk_count());
  FLUGS_CHECK(!__atomic_load_n(&chunk_.moving, __ATOMIC_RELAXED));  // one merge at a time
  __atomic_store_n(&chunk_.moving, true, __ATOMIC_SEQ_CST);
  mvcc::heavy_barrier();
}

RowStore::Move::~Move() { __atomic_store_n(&chunk_.moving, false, __ATOMIC_RELEASE); }

void RowStore::wait_for_move(std::uint32_t row) const noexcept {
  SpinWait wait;
  while (__atomic_load_n(&chunk_with(row).moving, __ATOMIC_ACQUIRE)) wait.once();
}

// The last step of protocol row_group (chunk_merge.cc). Between reading the old entries and here no
// entry changes (Move). What was replaced is freed only when all transactions that may read it have
// ended.
Status RowStore::replace_chunk(std::size_t index, pmem::Extent extent,
                               FunctionRef<std::uint64_t()> now, pmem::Persister& persister) {
  const std::lock_guard guard(grow_mutex_);
  RowChunk& chunk = chunks_in_dram_[index];
  FLUGS_CHECK(__atomic_load_n(&chunk.moving, __ATOMIC_RELAXED) && chunk.is_frozen());
  std::unique_ptr<RowGroup> group;
  if (extent.bytes == 0 || RowGroup::is_group(pool_, extent.offset))
    if (Result<std::uint64_t> bytes = load_group(index, extent.offset, false, group); !bytes.ok())
      return std::move(bytes).status();
  const std::uint64_t old_bytes = bytes_of(chunk, index);
  if (chunk.group_now() == nullptr) delta_bytes_.fetch_sub(old_bytes, std::memory_order_relaxed);
  replaced_.push_back({{chunk_list_.offset(index), old_bytes}, nullptr, nullptr, nullptr});
  Replaced& replaced = replaced_.back();
  chunk_list_.replace(index, extent, persister,
                      extent.bytes == 0 ? headers_.tag_of_nothing(index) : std::uint16_t{0});

  // No reader follows a link from these rows any more: each is in every snapshot, or in none.
  replaced.previous = __atomic_exchange_n(&chunk.previous, nullptr, __ATOMIC_ACQ_REL);
  if (replaced.previous != nullptr)
    previous_bytes_.fetch_sub(rows_in(index) * sizeof(std::uint32_t), std::memory_order_relaxed);
  replaced.group.reset(chunk.group_now());
  replaced.seen = seen_.take(index);
  if (group == nullptr) {
    const columns::RowLayout* layout = layouts_.shared(headers_.layout_of_made(extent.offset));
    __atomic_store_n(&chunk.layout, layout, __ATOMIC_RELEASE);
    headers_.lead_to_rows(chunk, extent.offset, *layout);
    const std::uint64_t emptied_at = now();
    __atomic_store_n(&chunk.used_parts, 0, __ATOMIC_RELAXED);  // seen with `emptied_at` or `frozen`
    FLUGS_CHECK(emptied_at > last_emptied_at_.load(std::memory_order_relaxed));
    __atomic_store_n(&chunk.emptied_at, emptied_at, __ATOMIC_RELEASE);
    last_emptied_at_.store(emptied_at, std::memory_order_release);
  }
  const bool is_empty = group == nullptr;
  __atomic_store_n(&chunk.group, group.release(), __ATOMIC_RELEASE);
  if (is_empty) __atomic_store_n(&chunk.frozen, false, __ATOMIC_RELEASE);
  bytes_.fetch_add(bytes_of(chunk, index) - old_bytes, std::memory_order_relaxed);
  if (is_empty) delta_bytes_.fetch_add(bytes_of(chunk, index), std::memory_order_relaxed);
  return {};
}

std::uint64_t RowStore::offset_of_chunk(std::size_t chunk) const {
  const std::lock_guard guard(grow_mutex_);
  return chunk_list_.offset(chunk);
}

void RowStore::for_each_group(FunctionRef<void(const RowGroup&)> visit) const {
  const std::lock_guard guard(grow_mutex_);
  for (std::size_t chunk = 0; chunk < chunk_count(); ++chunk)
    if (const RowGroup* there = group(chunk); there != nullptr) visit(*there);
}

void RowStore::release_former() {
  const std::lock_guard guard(grow_mutex_);
  for (std::size_t chunk = 0; chunk < chunk_count(); ++chunk)
    if (RowGroup* there = group(chunk); there != nullptr) there->release_former();
}

bool RowStore::has_replaced() const {
  const std::lock_guard guard(grow_mutex_);
  return !replaced_.empty();
}

std::uint64_t RowStore::replaced_bytes() const {
  const std::lock_guard guard(grow_mutex_);
  std::uint64_t bytes = 0;
  for (const Replaced& replaced : replaced_)
    bytes += replaced.extent.bytes + (replaced.group ? replaced.group->version_bytes() : 0);
  return bytes;
}

void RowStore::release_replaced() {
  const std::lock_guard guard(grow_mutex_);
  for (Replaced& replaced : replaced_) {
    if (replaced.group != nullptr) replaced.group->release_blocks();
    if (replaced.extent.bytes != 0) pool_.allocator().release(replaced.extent);
    std::free(replaced.previous);
  }
  replaced_.clear();
}

}  // namespace flugs::engine
