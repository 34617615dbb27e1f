#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>

#include "base/wake_word.h"

namespace flugs::pmem {

/// Threads that wait for writes of the journal, in two groups: those whose records are being
/// written, and those whose records come behind them. The end of a write wakes all of the first
/// group, which go on without the mutex, and one thread of the second, which writes the next batch.
/// Thread-safety: under the journal's mutex, which `lock` holds.
class BatchWaiters {
 public:
  using Lock = std::unique_lock<std::mutex>;

  /// Whether a thread wants the next thing durable soon after this one.
  enum class Returns : bool { kNo, kSoon };
  /// A thread of the second kind wants something durable: it will write, or sleep.
  void arrive() noexcept { arrived_.fetch_add(1, std::memory_order_relaxed); }
  /// Sleeps, without the lock, until the batch that is being written ends, or until the caller
  /// should write the next one. May return early.
  void sleep(Lock& lock, bool is_in_batch, Returns returns) noexcept;
  /// Before a write: waits for threads of the last batch that come back, while that pays.
  void gather(Lock& lock) noexcept;
  /// `returns`: of the thread that writes.
  void begin_write(Returns returns) noexcept;
  /// Wakes threads, and frees the lock for that. `is_last`: no write follows, so all wake.
  void end_write(Lock& lock, bool is_last) noexcept;

 private:
  using Clock = std::chrono::steady_clock;
  struct Group {
    WakeWord turn;
    std::uint32_t sleepers = 0;
    std::uint32_t returning = 0;  // of these, and of the thread that writes: Returns::kSoon
  };
  std::uint64_t came_back() const noexcept {
    return arrived_.load(std::memory_order_relaxed) - arrived_before_;
  }

  std::array<Group, 2> groups_;
  std::uint32_t written_group_ = 0;        // of the batch that is being written, or was the last
  std::atomic<std::uint64_t> arrived_{0};  // relaxed; gather reads it without the mutex
  std::uint64_t arrived_before_ = 0;       // arrived_ at the end of the last write
  std::uint64_t served_ = 0;               // threads that return, for which the last write was
  std::uint64_t behind_ = 0;               // threads that slept behind it
  Clock::time_point write_begin_{};
  Clock::time_point write_end_{};
  std::chrono::nanoseconds write_time_{std::chrono::microseconds(100)};  // about the shortest
};

}  // namespace flugs::pmem
