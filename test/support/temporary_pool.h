#pragma once

#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <string>

namespace flugs::test {

/// A path in `directory` that nobody else uses; what is there is removed at the end.
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

/// Zeroed memory for a pool in memory, aligned to a page.
class PoolBuffer {
 public:
  explicit PoolBuffer(std::size_t bytes)
      : memory_(new(std::align_val_t{4096}) std::byte[bytes]()), bytes_(bytes) {}

  std::span<std::byte> span() const noexcept { return {memory_.get(), bytes_}; }

 private:
  struct Delete {
    void operator()(std::byte* memory) const noexcept {
      ::operator delete[](memory, std::align_val_t{4096});
    }
  };
  std::unique_ptr<std::byte[], Delete> memory_;
  std::size_t bytes_;
};

}  // namespace flugs::test
