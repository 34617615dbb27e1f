#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>

#include "columns/zeroed_memory.h"
#include "pmem/check.h"

namespace flugs::columns {

/// For a std::vector that may get large: what fills a good part of a huge page asks the kernel for
/// whole ones. At opening each small page would be a fault, and afterwards each a TLB miss.
template <typename T>
struct HugePageAllocator {
  using value_type = T;

  HugePageAllocator() = default;
  template <typename U>
  explicit HugePageAllocator(const HugePageAllocator<U>& /*other*/) noexcept {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const bool is_large = bytes >= kHugePageBytes / 4;
    const std::size_t alignment = is_large ? kHugePageBytes : alignof(std::max_align_t);
    const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, whole);
    FLUGS_CHECK(memory != nullptr);
    if (is_large) ::madvise(memory, whole, MADV_HUGEPAGE);  // a wish
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t /*count*/) noexcept { std::free(memory); }

  friend bool operator==(const HugePageAllocator&, const HugePageAllocator&) { return true; }
};

}  // namespace flugs::columns
