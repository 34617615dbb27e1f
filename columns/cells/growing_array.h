#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace flugs::columns {

/// A DRAM array for data that mostly stays short. There are thousands of such arrays, so each takes
/// little more than its elements need. The first `kFirst` elements exist from the beginning, as
/// zeros. Readers index the array without a lock while it grows: a longer copy takes its place, and
/// former copies are kept for readers that still use them. So an element must not change once
/// readers may know it, else some of them would go on reading the former value.
///
/// Thread-safety: `put` one thread at a time. A reader may read an element behind the first
/// `kFirst` only after it has learned of it: through a store with release after `put`, and a load
/// with acquire.
template <typename T, std::size_t kFirst>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(const GrowingArray&) = delete;
  GrowingArray& operator=(const GrowingArray&) = delete;

  void put(std::size_t index, T value) {
    if (index >= capacity_) grow(index + 1);
    elements_.load(std::memory_order_relaxed)[index] = value;
  }
  // Acquire: a reader that knows only an early element may meet a later copy.
  T operator[](std::size_t index) const noexcept {
    return elements_.load(std::memory_order_acquire)[index];
  }

 private:
  void grow(std::size_t wanted) {
    const std::size_t capacity = std::max(wanted, capacity_ * 2);
    auto longer = std::make_unique<T[]>(capacity);
    std::copy_n(elements_.load(std::memory_order_relaxed), capacity_, longer.get());
    kept_.push_back(std::move(longer));
    elements_.store(kept_.back().get(), std::memory_order_release);
    capacity_ = capacity;
  }

  std::array<T, kFirst> first_{};
  std::atomic<T*> elements_{first_.data()};
  std::size_t capacity_ = kFirst;
  std::vector<std::unique_ptr<T[]>> kept_;  // elements_ is the last one, or first_
};

}  // namespace flugs::columns
