#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "flugs/status.h"

namespace flugs::tools {

/// Another process, this program again as a rule; killed with its owner.
class ChildProcess {
 public:
  /// Starts `program arguments...`, this program unless another is named, and gives it
  /// "--spawned-at NS" besides: CLOCK_MONOTONIC right before. Fails with kIoError.
  static Result<ChildProcess> start(std::vector<std::string> arguments,
                                    const std::string& program = "/proc/self/exe");
  /// Starts the program in the file `path`; the first argument is its name. `input`, unless
  /// negative, is a file descriptor that becomes its standard input. Fails with kIoError.
  static Result<ChildProcess> start_program(const std::string& path,
                                            std::vector<std::string> arguments, int input = -1);

  ChildProcess() noexcept = default;
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();

  /// Whether it has ended by itself; then it is reaped.
  bool has_ended();
  /// Sends SIGKILL and waits until it is gone.
  void kill();
  /// Waits until it ends.
  void wait();
  /// After the end: the exit status, or minus the signal that ended it.
  int exit_status() const noexcept { return exit_status_; }
  /// Ended by a signal that we did not send, or with another status than 0, in words.
  std::string describe_end() const;

 private:
  bool reap(int options);

  pid_t pid_ = 0;  ///< 0: none, or reaped
  int exit_status_ = 0;
};

/// To be called by a child first: it dies with its parent.
void die_with_parent();

}  // namespace flugs::tools
