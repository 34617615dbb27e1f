#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace flugs::python {

/// Lets one thread at a time in. A thread that is in may enter again: Python may run anything, also
/// the end of an object that belongs to the same transaction, wherever one of its objects is made.
///
/// A thread that waits lets others have the interpreter, since the one that is in may need it.
class Gate {
 public:
  /// In Python's main thread, waiting ends when the handler of a signal raises an exception, which
  /// it throws.
  void enter() {
    const std::uintptr_t self = name_of_thread();
    if (owner_.load(std::memory_order_relaxed) != self) {
      std::uintptr_t seen = 0;
      if (!owner_.compare_exchange_strong(seen, self, std::memory_order_acquire)) wait(self);
    }
    ++depth_;
  }
  /// As enter, but goes on waiting whatever happens.
  void enter_surely() noexcept;
  /// As enter, but waits so long only, whatever happens. False: another thread is still in.
  bool enter_within(std::chrono::milliseconds patience) noexcept;
  void leave() noexcept {
    if (--depth_ == 0) owner_.store(0, std::memory_order_release);
  }
  /// Whether this thread is in more than once.
  bool is_nested() const noexcept { return depth_ > 1; }

 private:
  static std::uintptr_t name_of_thread() noexcept {
    static thread_local char name [[gnu::tls_model("initial-exec")]] = 0;
    return reinterpret_cast<std::uintptr_t>(&name);
  }
  bool try_enter(std::uintptr_t self) noexcept {
    std::uintptr_t seen = 0;
    return owner_.compare_exchange_strong(seen, self, std::memory_order_acquire);
  }
  void wait(std::uintptr_t self);

  std::atomic<std::uintptr_t> owner_{0};  // 0: no thread
  unsigned depth_ = 0;                    // of the owner
};

/// Guard of what a thread does within a gate.
class Inside {
 public:
  explicit Inside(Gate& gate) : gate_(gate) { gate_.enter(); }
  ~Inside() { gate_.leave(); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;

 private:
  Gate& gate_;
};

}  // namespace flugs::python
