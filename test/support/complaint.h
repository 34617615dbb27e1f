#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

namespace flugs::test {

/// By how much a stress test does more than the least; the sanitizers are slow, and of the two the
/// thread sanitizer is the one that threads are for.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kEffort = 1;
#else
inline constexpr int kEffort = 10;
#endif
/// Of `rounds` that differ little from each other, the `few` that a sanitizer needs to see.
constexpr int rounds_of(int rounds, int few) { return kEffort == 1 ? few : rounds; }

/// What went wrong first, told by any thread: Catch's macros belong to the main thread.
class Complaint {
 public:
  bool expect(bool condition, const std::string& what) {
    if (condition) return true;
    const std::lock_guard guard(mutex_);
    if (what_.empty()) what_ = what;
    failed_.store(true, std::memory_order_relaxed);
    return false;
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  std::string what() const {
    const std::lock_guard guard(mutex_);
    return what_;
  }

 private:
  mutable std::mutex mutex_;
  std::string what_;
  std::atomic<bool> failed_{false};
};

}  // namespace flugs::test
