#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/background/thread_sleep.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::engine {

/// Enters pages of the pool into the process's page tables (pmem::Pool::warm), in the given order,
/// in a thread of its own, which then ends. A page that is already entered costs next to nothing.
/// Thread-safety: any thread, except creating and destroying.
class Warmer {
 public:
  /// The pool must outlive the object. If the thread does not start, nothing is lost: the first
  /// reader of a page enters it.
  Warmer(pmem::Pool& pool, std::vector<pmem::Extent> extents);

  std::uint64_t warmed_bytes() const noexcept {
    return warmed_bytes_.load(std::memory_order_relaxed);
  }
  /// Bytes that are still to come; 0 when the kernel refused some.
  std::uint64_t bytes_left() const noexcept { return bytes_left_.load(std::memory_order_relaxed); }
  /// How long the thread has worked.
  double ms() const noexcept {
    return static_cast<double>(ns_.load(std::memory_order_relaxed)) * 1e-6;
  }

 private:
  void run(const std::stop_token& stop) noexcept;
  bool warm(pmem::Extent extent, const std::stop_token& stop) noexcept;

  pmem::Pool& pool_;
  const std::vector<pmem::Extent> extents_;
  std::atomic<std::uint64_t> warmed_bytes_{0};
  std::atomic<std::uint64_t> bytes_left_{0};
  std::atomic<std::uint64_t> ns_{0};
  ThreadSleep sleep_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::engine
