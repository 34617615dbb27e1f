#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace flugs::crash {

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

}  // namespace flugs::crash
