#pragma once

#include <cstddef>
#include <span>

namespace flugs::damage {

/// Zeroed memory between two pages that must not be touched: a read behind either end ends the
/// process. The last byte of the memory is directly before the second of these pages.
class GuardedBuffer {
 public:
  /// `bytes` is rounded up to whole pages.
  explicit GuardedBuffer(std::size_t bytes);
  ~GuardedBuffer();
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;

  std::span<std::byte> span() const noexcept { return {begin_, bytes_}; }
  /// The last `bytes` of it, a multiple of 64.
  std::span<std::byte> tail(std::size_t bytes) const noexcept { return span().last(bytes); }

 private:
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace flugs::damage
