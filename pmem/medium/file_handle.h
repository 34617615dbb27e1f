#pragma once

#include <string>

#include "base/fork.h"
#include "flugs/status.h"

namespace flugs::pmem {

/// A failure of a system call on the file at `path`: `what` could not be done, because of `error`
/// (errno).
Status file_error(const std::string& path, const char* what, int error);

/// The folder that `path` leads into.
std::string folder_of(const std::string& path);
/// Makes names in this folder durable. A folder that cannot be read, or does not support it, is no
/// failure: no more can be done. kIoError.
Status sync_folder_of(const std::string& path);

/// An open file of this process, or none, and its lock. A child that forks closes it at once,
/// because its copy would keep the file locked when the parent has closed it; from then on every
/// call in the child fails.
/// Thread-safety: any thread may use fd(); the rest is for the thread that opens the file.
class FileHandle {
 public:
  explicit FileHandle(int fd) noexcept : fd_(fd) {}
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  /// Closes the file, and gives up its locks.
  ~FileHandle();

  /// -1: none.
  int fd() const noexcept { return fd_; }
  /// Closes the file; `fd` takes its place. Only before enter_fork_rule.
  void replace(int fd) noexcept;
  /// From now on, children close the file. Call it once. kIoError.
  Status enter_fork_rule();
  /// Locks the whole file for this opening of it, with `kind` F_RDLCK or F_WRLCK. False: another
  /// opening holds a lock that excludes it. kIoError: `path` names the file in the message.
  Result<bool> lock(short kind, const std::string& path) const;

 private:
  int fd_;
  AtFork at_fork_ = {};
};

}  // namespace flugs::pmem
