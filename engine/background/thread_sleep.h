#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>

namespace flugs::engine {

/// Lets a thread of the database sleep. One thread.
class ThreadSleep final {
 public:
  /// How long threads that opening starts sleep first. Otherwise, if the other processors are busy,
  /// a new thread may take the processor for some milliseconds, a slice of the scheduler, before
  /// the caller of open goes on. After a crash one processor is busy: it releases the memory of the
  /// process that died.
  static constexpr std::chrono::milliseconds kFirst{5};

  /// Sleeps until `time` is over, or the thread must stop.
  void sleep_for(const std::stop_token& stop, std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, time, [] { return false; });
  }

 private:
  std::mutex mutex_;  // protects nothing; a leaf
  std::condition_variable_any stopped_;
};

}  // namespace flugs::engine
