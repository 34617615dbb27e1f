#pragma once

#include "flugs/status.h"

// What the library does about fork(). A child has only the thread that forked; mutexes that other
// threads held at that moment stay locked in it. So a child must not use what it inherits of an
// open database, which says so (docs/concurrency.md).

namespace flugs {

/// While it lives, fork() waits in every thread, so that no child is made in the midst of what is
/// done meanwhile. Several may live at a time. Keep it short.
/// Thread-safety: any thread.
class ForkPause {
 public:
  ForkPause() noexcept;
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;
};

/// From `enter` to `leave` calls a function in each child that this process forks, before fork()
/// returns there. vfork and posix_spawn do not have it called.
/// Thread-safety: any thread for different objects.
class AtFork {
 public:
  /// Takes no lock, allocates nothing.
  using Action = void (*)(void* subject) noexcept;

  AtFork() noexcept = default;
  ~AtFork() { leave(); }
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

  /// Once. Fails with kIoError when the system has no memory for the first one of the process.
  Status enter(Action in_child, void* subject);
  void leave() noexcept;

 private:
  friend struct ForkHandlers;
  Action in_child_ = nullptr;  // null: has not entered, or has left
  void* subject_ = nullptr;
  AtFork* next_ = nullptr;
  AtFork* previous_ = nullptr;
};

}  // namespace flugs
