#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace flugs {

/// Threads sleep on it until another thread wakes them. A thread that is woken needs no mutex, but
/// would with a condition variable. A thread falls asleep at once, where std::atomic::wait takes
/// the processor from others several times before. Orders no memory. Thread-safety: any thread.
class WakeWord {
 public:
  std::uint32_t value() const noexcept { return word_.load(std::memory_order_relaxed); }
  /// Sleeps until it is woken; not if the value is another one than `value`. May return early.
  void sleep(std::uint32_t value) noexcept { call(FUTEX_WAIT_PRIVATE, value); }
  /// Before a thread wakes others. Those that have seen the former value do not fall asleep.
  void change() noexcept { word_.fetch_add(1, std::memory_order_relaxed); }
  void wake_one() noexcept { call(FUTEX_WAKE_PRIVATE, 1); }
  void wake_all() noexcept { call(FUTEX_WAKE_PRIVATE, INT_MAX); }

 private:
  void call(int operation, std::uint32_t argument) noexcept {
    static_assert(sizeof word_ == sizeof(std::uint32_t));
    ::syscall(SYS_futex, &word_, operation, argument, nullptr, nullptr, 0);
  }

  std::atomic<std::uint32_t> word_{0};
};

}  // namespace flugs
