#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace flugs::engine {

/// How a thread of the database sleeps. One thread.
class ThreadSleep final {
 public:
  /// How long threads that opening starts do so first. Otherwise a new one may have the processor
  /// for some milliseconds, a slice of the scheduler's, before who has opened goes on, when other
  /// processors are busy: after a crash one is, with the memory of the process that died.
  static constexpr std::chrono::milliseconds kFirst{5};

  /// Until `time` is over, or the thread is to stop.
  void sleep_for(const std::stop_token& stop, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, time, [] { return false; });
  }

 private:
  std::mutex mutex_;  // protects nothing; a leaf
  std::condition_variable_any stopped_;
};

}  // namespace flugs::engine
