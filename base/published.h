#pragma once

#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"

namespace flugs {

/// An object that any thread reads without a lock, while one thread at a time may replace it. Old
/// versions are kept until destruction, because a reader may still use them. So it is for data that
/// changes rarely, by DDL, and not for data that every transaction changes.
///
/// Thread-safety: `get` any thread; `put` one at a time.
template <typename T>
class Published {
 public:
  explicit Published(T first) { put(std::make_unique<const T>(std::move(first))); }
  explicit Published(std::unique_ptr<const T> first) { put(std::move(first)); }
  Published(const Published&) = delete;
  Published& operator=(const Published&) = delete;

  /// Valid as long as this object. Pairs with the store of `put`.
  const T& get() const noexcept { return *now_.load(std::memory_order_acquire); }
  void put(std::unique_ptr<const T> next) {
    FLUGS_CHECK(next != nullptr);
    kept_.push_back(std::move(next));
    now_.store(kept_.back().get(), std::memory_order_release);
  }
  void put(T next) { put(std::make_unique<const T>(std::move(next))); }

 private:
  std::vector<std::unique_ptr<const T>> kept_;
  std::atomic<const T*> now_{nullptr};
};

}  // namespace flugs
