#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

namespace flugs::tools {

/// Files to remove and children to kill before this process ends, however it ends. SIGINT,
/// SIGTERM and SIGHUP remove and kill first and end the process then.
///
/// Thread-safety: any thread.
class Cleanup {
 public:
  /// Call before the first thread is started: threads inherit that these signals are waited for.
  static void install();

  static void add_file(const std::string& path);
  static void keep_file(const std::string& path);
  static void add_child(pid_t child);
  static void forget_child(pid_t child);
};

/// A file that is removed with its owner, or a directory with all that is in it.
class TemporaryFile {
 public:
  TemporaryFile() = default;
  explicit TemporaryFile(std::string path) : path_(std::move(path)) { Cleanup::add_file(path_); }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::move(other.path_)) {
    other.path_.clear();
  }
  TemporaryFile& operator=(TemporaryFile&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }
  ~TemporaryFile();

  const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

}  // namespace flugs::tools
