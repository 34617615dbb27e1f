#pragma once

namespace flugs {

/// Called when its thread has to wait for another one: by every lock under which a thread may flush
/// or fence, and by every loop that waits. A scheduler that lets one thread run at a time then lets
/// another thread run; otherwise the two would wait for each other for ever.
class WaitObserver {
 public:
  virtual void on_wait() noexcept = 0;

 protected:
  ~WaitObserver() = default;
};

/// The observer of this thread. Null except in the threads of such a scheduler. Read only by code
/// that waits, or is about to take a mutex.
inline constinit thread_local WaitObserver* wait_observer = nullptr;

}  // namespace flugs
