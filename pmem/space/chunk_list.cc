#include "pmem/space/chunk_list.h"

#include <fmt/format.h>

#include <atomic>

#include "base/check.h"

namespace flugs::pmem {

namespace {

constexpr std::size_t kInline = ChunkListLayout::kInlineChunks;
constexpr std::size_t kPer = ChunkListLayout::kPagePointers;

bool is_pointer(std::uint64_t offset) noexcept {
  return offset != 0 && offset % 64 == 0 && offset <= ChunkListLayout::kOffsetMask;
}

bool is_chunk(Extent chunk) noexcept {
  return is_pointer(chunk.offset) &&
         (chunk.bytes == 0) == (chunk.offset == ChunkListLayout::kNoExtent);
}

void store_pointer(std::uint64_t& pointer, std::uint64_t value) noexcept {
  std::atomic_ref(pointer).store(value, std::memory_order_release);
}

}  // namespace

Status ChunkList::check_page(std::uint64_t offset, const char* kind) const {
  const std::uint64_t bytes = pool_.medium().bytes();
  if (offset % 64 != 0 || offset > bytes || bytes - offset < ChunkListLayout::kPageBytes) {
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: {}: {} page at offset {} lies outside the pool of {} bytes or is "
                    "not aligned to 64",
                    pool_.path(), owner_, kind, offset, bytes));
  }
  return pool_.allocator().claim({offset, ChunkListLayout::kPageBytes}, owner_);
}

Status ChunkList::load(
    FunctionRef<Result<std::uint64_t>(std::size_t index, std::uint64_t offset)> visit) {
  count_ = 0;
  std::uint64_t* root = nullptr;
  if (layout_.root_page != 0) {
    if (Status s = check_page(layout_.root_page, "root"); !s.ok()) return s;
    root = pool_.at(OffsetPtr<std::uint64_t>{layout_.root_page});
    pool_.rely_on(root, ChunkListLayout::kPageBytes);
    // Every leaf is claimed, also one whose first chunk was not published because of a crash.
    for (std::size_t leaf = 0; leaf < kPer && root[leaf] != 0; ++leaf) {
      if (Status s = check_page(root[leaf], "leaf"); !s.ok()) return s;
      pool_.rely_on(pool_.at(OffsetPtr<std::uint64_t>{root[leaf]}), ChunkListLayout::kPageBytes);
    }
  }
  for (std::size_t index = 0; index < ChunkListLayout::kChunksMax; ++index) {
    std::uint64_t chunk_offset = 0;
    if (index < kInline) {
      chunk_offset = layout_.inline_chunks[index];
    } else {
      const std::size_t leaf = (index - kInline) / kPer;
      if (root == nullptr || root[leaf] == 0) break;
      chunk_offset = pool_.at(OffsetPtr<std::uint64_t>{root[leaf]})[(index - kInline) % kPer];
    }
    if (chunk_offset == 0) break;
    if (chunks_ == Chunks::kRows) chunk_offset &= ChunkListLayout::kOffsetMask;
    const bool has_extent = chunks_ == Chunks::kPlain || chunk_offset != ChunkListLayout::kNoExtent;
    if (has_extent && (chunk_offset % 64 != 0 || chunk_offset > pool_.medium().bytes() - 64))
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{}: {}: chunk {} at offset {} lies outside the pool of {} bytes or "
                      "is not aligned to 64",
                      pool_.path(), owner_, index, chunk_offset, pool_.medium().bytes()));
    Result<std::uint64_t> bytes = visit(index, chunk_offset);
    if (!bytes.ok()) return std::move(bytes).status();
    if (has_extent)
      if (Status s = pool_.allocator().claim({chunk_offset, *bytes}, owner_); !s.ok()) return s;
    ++count_;
  }
  return check_end();
}

/// Pointers are stored in order: if a pointer behind the first 0 is not 0, the 0 was a lost
/// pointer. A page may exist before its first chunk.
Status ChunkList::check_end() const {
  const auto lost = [&](std::size_t index, std::uint64_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: {}: pointer to chunk {}: expected an offset, found 0, although "
                              "the pointer to chunk {} is {}",
                              pool_.path(), owner_, count_, index, found));
  };
  for (std::size_t i = count_; i < kInline; ++i)
    if (layout_.inline_chunks[i] != 0) return lost(i, layout_.inline_chunks[i]);
  if (layout_.root_page == 0) return {};
  if (count_ < kInline) return lost(kInline, layout_.root_page);
  const std::uint64_t* leaves = pool_.at(OffsetPtr<std::uint64_t>{layout_.root_page});
  const std::size_t leaf = (count_ - kInline) / kPer;
  if (leaf >= kPer) return {};
  if (leaf + 1 < kPer && leaves[leaf + 1] != 0)
    return lost(kInline + (leaf + 1) * kPer, leaves[leaf + 1]);
  if (leaves[leaf] == 0) return {};
  const std::uint64_t* chunks = pool_.at(OffsetPtr<std::uint64_t>{leaves[leaf]});
  for (std::size_t i = (count_ - kInline) % kPer; i < kPer; ++i)
    if (chunks[i] != 0) return lost(kInline + leaf * kPer + i, chunks[i]);
  return {};
}

Result<std::uint64_t> ChunkList::new_page(std::uint64_t& pointer, Persister& persister) {
  if (pointer != 0) return pointer;
  Result<Extent> page = pool_.allocator().allocate(ChunkListLayout::kPageBytes, persister);
  if (!page.ok()) return std::move(page).status();
  persister.fence("chunk_list/1");
  store_pointer(pointer, page->offset);
  persister.persist(&pointer, sizeof pointer, "chunk_list/2");
  return page->offset;
}

Result<std::uint64_t*> ChunkList::slot_for_append(std::size_t index, Persister& persister) {
  if (index < kInline) return &layout_.inline_chunks[index];
  if (index >= ChunkListLayout::kChunksMax)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{}: {}: all {} chunks are in use", pool_.path(), owner_, index));
  Result<std::uint64_t> root = new_page(layout_.root_page, persister);
  if (!root.ok()) return std::move(root).status();
  std::uint64_t* leaves = pool_.at(OffsetPtr<std::uint64_t>{*root});
  Result<std::uint64_t> leaf = new_page(leaves[(index - kInline) / kPer], persister);
  if (!leaf.ok()) return std::move(leaf).status();
  return &pool_.at(OffsetPtr<std::uint64_t>{*leaf})[(index - kInline) % kPer];
}

// Protocol chunk_list. A chunk is part of the list after step 4.
//   step  store                            made durable by     power cut just after it: recovery
//   1     zeros of a new page (if needed)  flush, fence        page unreachable: free space
//   2     pointer to that page             persist (8 bytes)   claims the page, finds it empty
//   3     contents of the chunk (caller)   flush, fence here   chunk unreachable: free space
//   4     pointer to the chunk             persist (8 bytes)   claims the chunk
// Must hold:  1 before 2 and 3 before 4, else recovery would follow pointers into noise.
Status ChunkList::append(Extent chunk, Persister& persister, std::uint16_t tag) {
  FLUGS_CHECK(tag == 0 || chunks_ == Chunks::kRows);
  FLUGS_CHECK(is_chunk(chunk) && chunk.bytes != 0);
  Result<std::uint64_t*> slot = slot_for_append(count_, persister);
  if (!slot.ok()) return std::move(slot).status();
  persister.fence("chunk_list/3");
  store_pointer(**slot, chunk.offset | std::uint64_t{tag} << ChunkListLayout::kTagShift);
  persister.persist(*slot, sizeof **slot, "chunk_list/4");
  ++count_;
  return {};
}

// Protocol chunk_replace. The new chunk is part of the list after step 2.
//   step  store                       made durable by     power cut just after it: recovery
//   1     contents of the new chunk   flush by caller,    chunk unreachable: free space; the one
//         tag of the one behind := 0    fence here          behind is looked at
//   2     pointer to the new chunk,   persist (8 bytes)   claims the new one, the old is free
//         or kNoExtent with a tag
// Must hold:  1 before 2, else recovery would follow the pointer into noise, and assume that the
//             chunk behind looks like the new one.
void ChunkList::replace(std::size_t index, Extent chunk, Persister& persister,
                        std::uint16_t tag) noexcept {
  FLUGS_CHECK(index < count_ && is_chunk(chunk));
  FLUGS_CHECK(chunk.bytes != 0 || chunks_ == Chunks::kRows);
  FLUGS_CHECK((chunk.bytes == 0) == (tag != 0));
  if (index + 1 < count_ && this->tag(index + 1) != 0 &&
      offset(index + 1) != ChunkListLayout::kNoExtent) {
    std::uint64_t& next = pointer_to(index + 1);
    store_pointer(next, offset(index + 1));
    persister.flush(&next, sizeof next, "chunk_replace/1");
  }
  persister.fence("chunk_replace/1");
  std::uint64_t& pointer = pointer_to(index);
  store_pointer(pointer, chunk.offset | std::uint64_t{tag} << ChunkListLayout::kTagShift);
  persister.persist(&pointer, sizeof pointer, "chunk_replace/2");
}

std::uint64_t& ChunkList::pointer_to(std::size_t index) const noexcept {
  FLUGS_DCHECK(index <= count_);  // load's visit may ask for the chunk that it visits
  if (index < kInline) return layout_.inline_chunks[index];
  const std::uint64_t* leaves = pool_.at(OffsetPtr<std::uint64_t>{layout_.root_page});
  const std::uint64_t leaf = leaves[(index - kInline) / kPer];
  return pool_.at(OffsetPtr<std::uint64_t>{leaf})[(index - kInline) % kPer];
}

std::uint64_t ChunkList::offset(std::size_t index) const noexcept {
  return pointer_to(index) & ChunkListLayout::kOffsetMask;
}

std::uint16_t ChunkList::tag(std::size_t index) const noexcept {
  return static_cast<std::uint16_t>(pointer_to(index) >> ChunkListLayout::kTagShift);
}

void ChunkList::release_all(
    FunctionRef<std::uint64_t(std::size_t index, std::uint64_t offset)> bytes_of) {
  for (std::size_t index = 0; index < count_; ++index) {
    const std::uint64_t chunk_offset = offset(index);
    const std::uint64_t bytes = bytes_of(index, chunk_offset);
    if (chunk_offset != ChunkListLayout::kNoExtent)
      pool_.allocator().release({chunk_offset, bytes});
  }
  if (layout_.root_page != 0) {
    const std::uint64_t* leaves = pool_.at(OffsetPtr<std::uint64_t>{layout_.root_page});
    for (std::size_t leaf = 0; leaf < kPer && leaves[leaf] != 0; ++leaf)
      pool_.allocator().release({leaves[leaf], ChunkListLayout::kPageBytes});
    pool_.allocator().release({layout_.root_page, ChunkListLayout::kPageBytes});
  }
  count_ = 0;
}

}  // namespace flugs::pmem
