#pragma once

#include <unistd.h>

#include <atomic>
#include <string>

#include "verify/crash/rig/pool_buffer.h"

namespace flugs::test {

/// An unused path in `directory`; its file is removed at the end.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& directory = "/dev/shm")
      : path_(directory + "/flugs-test-" + std::to_string(::getpid()) + "-" +
              std::to_string(next_number())) {
    ::unlink(path_.c_str());
  }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() { ::unlink(path_.c_str()); }

  const std::string& string() const noexcept { return path_; }

 private:
  static unsigned next_number() noexcept {
    static std::atomic<unsigned> number{0};
    return number.fetch_add(1);
  }

  std::string path_;
};

using crash::PoolBuffer;

}  // namespace flugs::test
