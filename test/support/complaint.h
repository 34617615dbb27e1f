#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

namespace flugs::test {

/// Factor of a stress test's work over the minimum. The sanitizers are slow; the thread sanitizer
/// is the one that these tests are for.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
inline constexpr int kEffort = 1;
#else
inline constexpr int kEffort = 10;
#endif
/// `rounds`, or just the `few` of similar rounds that a sanitizer needs.
constexpr int rounds_of(int rounds, int few) { return kEffort == 1 ? few : rounds; }

/// The first error, reported by any thread: Catch's macros belong to the main thread.
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
