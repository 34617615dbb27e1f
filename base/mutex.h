#pragma once

#include <mutex>

#include "base/waiting.h"

namespace flugs {

/// A std::mutex that tells the thread's WaitObserver when the thread has to wait for it. For
/// mutexes that are held across a flush or a fence; other leaf mutexes do not need it.
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
