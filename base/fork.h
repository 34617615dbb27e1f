#pragma once

#include "flugs/status.h"

// The library's rules about fork(). A child has only the thread that forked; mutexes that other
// threads held at that moment stay locked in it. So a child must not use an open database that it
// inherits, and such a database refuses every call (docs/concurrency.md).

namespace flugs {

/// Guard: while it exists, fork() waits in every thread, so no child is made in the middle of the
/// guarded work. Several may exist at a time. Keep it short.
/// Thread-safety: any thread.
class ForkPause {
 public:
  ForkPause() noexcept;
  ~ForkPause();
  ForkPause(const ForkPause&) = delete;
  ForkPause& operator=(const ForkPause&) = delete;
};

/// From `enter` to `leave`, calls a function in each child that this process forks, before fork()
/// returns there. vfork and posix_spawn do not call it.
/// Thread-safety: any thread for different objects.
class AtFork {
 public:
  /// The function must take no lock and allocate nothing.
  using Action = void (*)(void* subject) noexcept;

  AtFork() noexcept = default;
  ~AtFork() { leave(); }
  AtFork(const AtFork&) = delete;
  AtFork& operator=(const AtFork&) = delete;

  /// Call it once. Fails with kIoError when the system has no memory for the first handler of the
  /// process.
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
