#include "columns/index/ordered_index_node.h"

#include <sys/mman.h>

#include <mutex>
#include <new>

#include "base/check.h"
#include "base/zeroed_memory.h"

namespace flugs::columns {

namespace {

// A small key needs just a root; a large index wants huge pages.
constexpr std::size_t kFirstNodeSlabBytes = std::size_t{16} << 10;
constexpr std::size_t kNodeSlabBytesMax = std::size_t{4} << 20;

}  // namespace

void* NodeStore::allocate(std::size_t bytes) {
  if (slabs_.empty() || slab_used_ + bytes > slabs_.back().bytes) {
    const std::size_t slab_bytes =
        slabs_.empty() ? kFirstNodeSlabBytes : std::min(slabs_.back().bytes * 2, kNodeSlabBytesMax);
    void* memory = take_zeroed(slab_bytes);
    if (slab_bytes >= kHugePageBytes) ::madvise(memory, slab_bytes, MADV_HUGEPAGE);
    slabs_.push_back({memory, slab_bytes});
    slab_used_ = 0;
    memory_bytes_.fetch_add(slab_bytes, std::memory_order_relaxed);
  }
  void* result = static_cast<std::byte*>(slabs_.back().memory) + slab_used_;
  slab_used_ += bytes;
  return result;
}

Leaf* NodeStore::new_leaf() {
  const std::lock_guard guard(lock_);
  if (free_leaves_.empty()) return new (allocate(sizeof(Leaf))) Leaf;
  Leaf* leaf = free_leaves_.back();
  free_leaves_.pop_back();
  return leaf;
}

Inner* NodeStore::new_inner() {
  const std::lock_guard guard(lock_);
  if (free_inners_.empty()) return new (allocate(sizeof(Inner))) Inner;
  Inner* inner = free_inners_.back();
  free_inners_.pop_back();
  return inner;
}

void NodeStore::free(Leaf* leaf) {
  FLUGS_DCHECK(leaf->is_leaf && !leaf->lock.is_locked());
  const std::lock_guard guard(lock_);
  free_leaves_.push_back(leaf);
}

void NodeStore::free(Inner* inner) {
  FLUGS_DCHECK(!inner->is_leaf && !inner->lock.is_locked());
  const std::lock_guard guard(lock_);
  free_inners_.push_back(inner);
}

void NodeStore::clear() noexcept {
  const std::lock_guard guard(lock_);
  for (const Slab& slab : slabs_) {
    const bool is_last = slab.memory == slabs_.back().memory;
    give_back_zeroed(slab.memory, slab.bytes, is_last ? slab_used_ : slab.bytes);
  }
  free_leaves_.clear();
  free_inners_.clear();
  slabs_.clear();
  slab_used_ = 0;
  memory_bytes_.store(0, std::memory_order_relaxed);
}

}  // namespace flugs::columns
