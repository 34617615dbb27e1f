#include "engine/background/event_queue.h"

#include <utility>

#include "base/thread.h"

namespace flugs::engine {

EventQueue::EventQueue(Tell tell) : tell_(std::move(tell)) {
  if (!tell_) return;
  Result<std::jthread> started =
      start_thread("flugs-events", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok()) thread_ = *std::move(started);
}

EventQueue::~EventQueue() {
  thread_.request_stop();
  posted_.notify_all();
}

void EventQueue::post(Event event) {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(mutex_);
    if (events_.size() == kEventsMax) return;
    events_.push_back(std::move(event));
  }
  posted_.notify_one();
}

// Ends when it is told to stop and every event has been told.
void EventQueue::run(const std::stop_token& stop) noexcept {
  for (;;) {
    std::unique_lock lock(mutex_);
    posted_.wait(lock, stop, [this] { return !events_.empty(); });
    if (events_.empty()) return;
    const Event event = std::move(events_.front());
    events_.pop_front();
    lock.unlock();
    tell_(event);
  }
}

}  // namespace flugs::engine
