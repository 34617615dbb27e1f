#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace flugs::engine {

/// Who is trying a piece of work again because it met with conflicts, in the order in which they
/// began to. The first of them hardly pauses, the others the longer the more are before them; and
/// when the first one fails again and again, all others wait for it, a bounded time.
///
/// Nobody is noted down whose work succeeds at once: that costs one look at a word which changes
/// only when somebody fails often.
/// Thread-safety: any thread.
class RetryQueue {
 public:
  using Clock = std::chrono::steady_clock;

  /// One piece of work; leaves the queue at the end.
  class Place {
   public:
    explicit Place(RetryQueue& queue) noexcept : queue_(queue) {}
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    /// Before each attempt: while another one has the turn, waits for it. How long it took.
    Clock::duration wait_for_turn();
    /// After an attempt that took `spent` and failed: a pause, at most `pause_max`, until
    /// `deadline`. How long it took.
    Clock::duration pause(Clock::duration spent, Clock::duration pause_max,
                          Clock::time_point deadline);

   private:
    RetryQueue& queue_;
    std::uint64_t number_ = 0;  // 0: not in the queue
    std::uint32_t failures_ = 0;
  };

  /// How many are in it.
  std::size_t size() const;

  /// As many failures of the first one give it the turn.
  static constexpr std::uint32_t kFailuresBeforeTurn = 8;
  /// What others wait for it, an attempt.
  static constexpr std::chrono::milliseconds kTurnPatience{100};

 private:
  std::size_t enter_or_find(std::uint64_t& number);

  mutable std::mutex mutex_;  // protects waiting_ and last_number_; a leaf
  std::condition_variable turn_ended_;
  std::vector<std::uint64_t> waiting_;  // ascending
  std::uint64_t last_number_ = 0;
  std::atomic<std::uint64_t> turn_{0};  // whose it is; written under mutex_
};

}  // namespace flugs::engine
