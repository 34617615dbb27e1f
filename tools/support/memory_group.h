#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "flugs/status.h"

namespace flugs::tools {

/// A control group of the kernel (cgroup v1 or v2) that limits the memory of the processes in it,
/// page cache included. Removed with its owner, when no process is left in it.
class MemoryGroup {
 public:
  /// A fresh one, without a limit. kIoError: the system or the user has none to give.
  static Result<MemoryGroup> make();
  MemoryGroup() = default;
  MemoryGroup(MemoryGroup&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  MemoryGroup& operator=(MemoryGroup&& other) noexcept {
    path_.swap(other.path_);
    return *this;
  }
  ~MemoryGroup();

  /// The folder that stands for it.
  const std::string& path() const noexcept { return path_; }
  /// Limits the memory of its processes to `bytes`, without swap. kIoError: the kernel cannot take
  /// back what they have.
  Status limit(std::uint64_t bytes) const;
  /// Page faults so far that waited for a device.
  std::uint64_t major_faults() const;

  /// This process belongs to the group at `path` from now on. kIoError.
  static Status join(const std::string& path);

 private:
  explicit MemoryGroup(std::string path) : path_(std::move(path)) {}

  std::string path_;
};

}  // namespace flugs::tools
