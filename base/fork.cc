#include "base/fork.h"

#include <pthread.h>

#include <chrono>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"

namespace flugs {

namespace {

constexpr std::chrono::microseconds kLookPause{50};

constinit std::mutex mutex;           // protects `pauses`; held while the process forks; a leaf
constinit unsigned pauses = 0;        // ForkPauses that exist
constinit std::mutex list_mutex;      // protects the list, is taken within a ForkPause; a leaf
constinit AtFork* entered = nullptr;  // the list

}  // namespace

struct ForkHandlers {
  static int install() noexcept {
    static const int error = ::pthread_atfork(&before, &in_parent, &in_child);
    return error;
  }
  // Returns with the mutex locked, so no pause can begin.
  static void before() {
    mutex.lock();
    while (pauses != 0) {
      mutex.unlock();
      std::this_thread::sleep_for(kLookPause);
      mutex.lock();
    }
  }
  static void in_parent() { mutex.unlock(); }
  static void in_child() {
    while (entered != nullptr) {
      AtFork& one = *std::exchange(entered, entered->next_);
      std::exchange(one.in_child_, nullptr)(one.subject_);
    }
    mutex.unlock();
  }
};

ForkPause::ForkPause() noexcept {
  static_cast<void>(ForkHandlers::install());
  const std::lock_guard guard(mutex);
  ++pauses;
}

ForkPause::~ForkPause() {
  const std::lock_guard guard(mutex);
  FLUGS_CHECK(pauses != 0);
  --pauses;
}

Status AtFork::enter(Action in_child, void* subject) {
  if (const int error = ForkHandlers::install(); error != 0)
    return Status(StatusCode::kIoError, std::string("pthread_atfork: ") + std::strerror(error));
  const ForkPause pause;
  const std::lock_guard guard(list_mutex);
  FLUGS_CHECK(in_child != nullptr && in_child_ == nullptr);  // it has not entered yet
  in_child_ = in_child;
  subject_ = subject;
  previous_ = nullptr;
  next_ = std::exchange(entered, this);
  if (next_ != nullptr) next_->previous_ = this;
  return {};
}

void AtFork::leave() noexcept {
  const ForkPause pause;
  const std::lock_guard guard(list_mutex);
  if (in_child_ == nullptr) return;
  in_child_ = nullptr;
  if (next_ != nullptr) next_->previous_ = previous_;
  (previous_ != nullptr ? previous_->next_ : entered) = next_;
}

}  // namespace flugs
