#pragma once

#include <sqlite3.h>

#include <csignal>

namespace flugs::tools {

/// While it lives, Ctrl-C interrupts the statements of a connection, if there is one, and does not
/// end the process. The newest one counts.
///
/// Thread-safety: the main thread.
class Interrupts {
 public:
  explicit Interrupts(sqlite3* db) noexcept;
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  ~Interrupts();

  /// Whether Ctrl-C came since the last call. Call it behind each wait for a key: Ctrl-C ends the
  /// wait, also if it comes before the wait begins. Another thread may handle the signal that has
  /// ended a wait, and not be done yet: then the next call says so.
  static bool take() noexcept;

 private:
  sqlite3* before_;
  struct sigaction action_before_ = {};
};

}  // namespace flugs::tools
