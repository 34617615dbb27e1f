#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

#include "flugs/progress.h"
#include "flugs/status.h"

namespace flugs::python {

namespace nb = nanobind;

/// Whether this thread may use Python objects.
bool is_attached() noexcept;
/// Whether this is the thread in which Python runs the handlers of signals. Attached threads only.
bool is_main_thread() noexcept;

/// Lets other threads have the interpreter while it exists, if this thread has it.
class Detached {
 public:
  Detached() {
    if (is_attached()) released_.emplace();
  }

 private:
  std::optional<nb::gil_scoped_release> released_;
};

/// The number of forks that lie between the first process and this one.
unsigned forks() noexcept;
/// Begins to count forks. Fails when the system refuses that.
void count_forks();

/// Stops a long call at Ctrl-C. While the call tells its progress in Python's main thread, the
/// handlers of signals run; an exception of theirs asks the call to stop.
///
/// Thread-safety: one call at a time, but for `stop`.
class Interrupt {
 public:
  Interrupt() = default;
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// From now on the call runs in this thread.
  void begin() noexcept;
  /// For the options of the call. This object must outlive it.
  std::function<void(const Progress&)> progress();
  std::stop_token token() const noexcept { return source_.get_token(); }
  void stop() noexcept { source_.request_stop(); }
  /// Throws what a handler raised. Attached.
  void check();
  /// For calls from foreign code, which cannot take an exception of ours: forgets what the handler
  /// raised, and has Python run the handlers again as soon as it can. Whether there was one.
  bool leave_to_python() noexcept;

 private:
  void look();

  std::thread::id thread_;
  std::chrono::steady_clock::time_point looked_;
  std::stop_source source_;
  std::optional<nb::python_error> error_;
};

/// Runs `work` without the interpreter. In the main thread it runs in another thread, while this
/// one waits for signals: Ctrl-C asks `work` to stop, and is raised when `work` has returned.
Status run_long(const std::function<Status(std::stop_token)>& work,
                const std::stop_token& also = {});

}  // namespace flugs::python
