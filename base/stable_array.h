#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "base/check.h"
#include "base/zeroed_memory.h"

namespace flugs {

/// A DRAM array of fixed capacity that never moves, so that readers index it without a lock while
/// it fills up. Only the pages that were touched take memory; elements start as zero bytes.
template <typename T>
class StableArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit StableArray(std::size_t capacity)
      : capacity_(capacity), elements_(static_cast<T*>(take_zeroed(capacity * sizeof(T)))) {}
  ~StableArray() { give_back_zeroed(elements_, capacity_ * sizeof(T), written_ * sizeof(T)); }
  StableArray(const StableArray&) = delete;
  StableArray& operator=(const StableArray&) = delete;

  /// The element, to set it for the first time. One thread at a time.
  T& begin(std::size_t index) noexcept {
    written_ = std::max(written_, index + 1);
    return (*this)[index];
  }
  /// The element, to read it or to change it after `begin`.
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
  std::size_t written_ = 0;  // elements from here on have never been begun, so they are zero
  T* elements_;
};

}  // namespace flugs
