#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "flugs/events.h"

namespace flugs::test {

/// Collects events, and waits for them.
class Told {
 public:
  void operator()(const Event& event) {
    const std::lock_guard guard(mutex_);
    events_.push_back(event);
    more_.notify_all();
  }
  /// The first event of this kind; fails the test if none comes in 20 seconds.
  Event first(EventKind kind) {
    std::unique_lock lock(mutex_);
    const auto find = [&] {
      return std::find_if(events_.begin(), events_.end(),
                          [&](const Event& event) { return event.kind == kind; });
    };
    const bool came =
        more_.wait_for(lock, std::chrono::seconds(20), [&] { return find() != events_.end(); });
    REQUIRE(came);
    return *find();
  }
  std::vector<Event> all() {
    const std::lock_guard guard(mutex_);
    return events_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  std::vector<Event> events_;
};

}  // namespace flugs::test
