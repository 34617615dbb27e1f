#pragma once

#include <mutex>

#include "base/waiting.h"

namespace flugs {

/// A std::mutex that tells the thread's WaitObserver when it is taken. For mutexes that are held
/// across a flush or a fence; a leaf that is not needs none.
class Mutex {
 public:
  void lock() {
    if (__builtin_expect(wait_observer == nullptr, 1)) return mutex_.lock();
    while (!mutex_.try_lock()) wait_observer->on_wait();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  std::mutex mutex_;
};

}  // namespace flugs
