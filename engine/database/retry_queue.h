#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace flugs::engine {

/// The work that is being tried again after conflicts, in the order in which it entered. The first
/// in the queue hardly pauses; the others pause longer the more are before them. When the first one
/// fails again and again, all others wait for it, for a bounded time.
///
/// Work that succeeds at once is not entered. It costs one look at a word that changes only when
/// some work fails often.
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

    /// Called before each attempt: waits while other work has the turn. Returns how long it waited.
    Clock::duration wait_for_turn();
    /// Called after an attempt that took `spent` and failed: pauses for `pause_max` at most, and
    /// until `deadline`. Returns how long it paused.
    Clock::duration pause(Clock::duration spent, Clock::duration pause_max,
                          Clock::time_point deadline);

   private:
    RetryQueue& queue_;
    std::uint64_t number_ = 0;  // 0: not in the queue
    std::uint32_t failures_ = 0;
  };

  /// Number of pieces of work in the queue.
  std::size_t size() const;

  /// After this many failures the first one gets the turn.
  static constexpr std::uint32_t kFailuresBeforeTurn = 8;
  /// How long others wait for it, per attempt.
  static constexpr std::chrono::milliseconds kTurnPatience{100};

 private:
  std::size_t enter_or_find(std::uint64_t& number);

  mutable std::mutex mutex_;  // protects waiting_ and last_number_; a leaf
  std::condition_variable turn_ended_;
  std::vector<std::uint64_t> waiting_;  // ascending
  std::uint64_t last_number_ = 0;
  std::atomic<std::uint64_t> turn_{0};  // number of the work with the turn; written under mutex_
};

}  // namespace flugs::engine
