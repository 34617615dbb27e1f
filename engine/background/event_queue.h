#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "flugs/events.h"

namespace flugs::engine {

/// Tells the user what happens in the background (OpenOptions::on_event), in a thread of its own:
/// the thread that posts an event may hold locks, and the user's function may take its time or call
/// the database.
/// Thread-safety: any thread, except creating and destroying.
class EventQueue final {
 public:
  using Tell = std::function<void(const Event&)>;

  /// Without a function, or if the system refuses the thread, events are forgotten.
  explicit EventQueue(Tell tell);
  /// Tells what has been posted so far. No thread may post any more.
  ~EventQueue();
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  void post(Event event);

 private:
  // A function that takes its time loses the newest events, not memory.
  static constexpr std::size_t kEventsMax = 1024;

  void run(const std::stop_token& stop) noexcept;

  Tell tell_;
  std::mutex mutex_;  // protects events_; a leaf
  std::deque<Event> events_;
  std::condition_variable_any posted_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::engine
