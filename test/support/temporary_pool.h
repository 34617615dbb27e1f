#pragma once

#include <unistd.h>

#include <atomic>
#include <string>

#include "verify/crash/rig/pool_buffer.h"

namespace flugs::test {

/// An unused path in `directory`; its file and its journal are removed at the end.
class TemporaryPath {
 public:
  explicit TemporaryPath(const std::string& directory = "/dev/shm")
      : path_(directory + "/flugs-test-" + std::to_string(::getpid()) + "-" +
              std::to_string(next_number())) {
    remove();
  }
  TemporaryPath(const TemporaryPath&) = delete;
  TemporaryPath& operator=(const TemporaryPath&) = delete;
  ~TemporaryPath() { remove(); }

  const std::string& string() const noexcept { return path_; }
  /// The path of the journal that a pool here has on a disk.
  std::string journal() const { return path_ + ".journal"; }

 private:
  void remove() const noexcept {
    ::unlink(path_.c_str());
    ::unlink(journal().c_str());
  }
  static unsigned next_number() noexcept {
    static std::atomic<unsigned> number{0};
    return number.fetch_add(1);
  }

  std::string path_;
};

using crash::PoolBuffer;

}  // namespace flugs::test
