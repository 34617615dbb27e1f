#pragma once

#include <sched.h>

#include <atomic>

#include "base/check.h"
#include "base/waiting.h"

namespace flugs {

/// Pauses a little, then gives the processor away: a waiter must not burn the time slice of the
/// thread it waits for when there are more threads than processors.
class SpinWait {
 public:
  void once() noexcept {
    if (__builtin_expect(wait_observer != nullptr, 0)) return wait_observer->on_wait();
    if (++rounds_ < kSpinsMax) {
      __builtin_ia32_pause();
    } else {
      ::sched_yield();
    }
  }

 private:
  // 64 pauses are about 1 us, several times what any holder needs unless it was preempted.
  static constexpr int kSpinsMax = 64;
  int rounds_ = 0;
};

/// A lock for writers that hold it for some tens of nanoseconds. Four bytes.
class SpinLock {
 public:
  void lock() noexcept {
    SpinWait wait;
    while (held_.exchange(1, std::memory_order_acquire) != 0) {
      while (held_.load(std::memory_order_relaxed) != 0) wait.once();
    }
  }
  bool try_lock() noexcept { return held_.exchange(1, std::memory_order_acquire) == 0; }
  void unlock() noexcept {
    FLUGS_DCHECK(held_.load(std::memory_order_relaxed) != 0);
    held_.store(0, std::memory_order_release);
  }

 private:
  std::atomic<unsigned> held_{0};
};

}  // namespace flugs
