#pragma once

namespace flugs {

/// Is told when its thread has to wait for another one: by every lock under which somebody may
/// flush or fence, and by every loop that waits. A scheduler that lets one thread run at a time
/// gives the turn to another then, else the two would wait for each other for ever.
class WaitObserver {
 public:
  virtual void on_wait() noexcept = 0;

 protected:
  ~WaitObserver() = default;
};

/// Of this thread. Null but in the threads of such a scheduler; looked at only by who waits, or is
/// about to take a mutex.
inline constinit thread_local WaitObserver* wait_observer = nullptr;

}  // namespace flugs
