#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

#include "pmem/check.h"

namespace flugs::columns {

/// A DRAM array of fixed capacity that never moves, so that readers index it without a lock while
/// it fills up. Only the pages that were touched take memory; elements start as zero bytes.
template <typename T>
class StableArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit StableArray(std::size_t capacity) : capacity_(capacity) {
    void* memory = ::mmap(nullptr, capacity * sizeof(T), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    FLUGS_CHECK(memory != MAP_FAILED);  // address space, not memory: only a bug exhausts it
    elements_ = static_cast<T*>(memory);
  }
  ~StableArray() { ::munmap(elements_, capacity_ * sizeof(T)); }
  StableArray(const StableArray&) = delete;
  StableArray& operator=(const StableArray&) = delete;

  T& operator[](std::size_t index) noexcept {
    FLUGS_DCHECK(index < capacity_);
    return elements_[index];
  }
  const T& operator[](std::size_t index) const noexcept {
    FLUGS_DCHECK(index < capacity_);
    return elements_[index];
  }
  std::size_t capacity() const noexcept { return capacity_; }

 private:
  std::size_t capacity_;
  T* elements_ = nullptr;
};

}  // namespace flugs::columns
