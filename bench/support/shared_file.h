#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "flugs/status.h"

namespace flugs::bench {

/// Stores before this come before stores after it, as far as the compiler is concerned; that is all
/// that a killed process needs.
inline void keep_order() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

/// A file mapped by several processes, outside of any pool: what one of them stores there outlives
/// its being killed.
class SharedFile {
 public:
  /// Makes a file of `bytes` zeros, which takes space only where it is touched.
  /// Fails with kAlreadyExists, kIoError.
  static Result<SharedFile> create(const std::string& path, std::uint64_t bytes);
  /// Fails with kIoError; kIncompatible when it is smaller than `bytes_min`.
  static Result<SharedFile> open(const std::string& path, std::uint64_t bytes_min);

  SharedFile() noexcept = default;
  SharedFile(SharedFile&& other) noexcept;
  SharedFile& operator=(SharedFile&& other) noexcept;
  ~SharedFile();

  std::byte* data() const noexcept { return data_; }

 private:
  static Result<SharedFile> map(int file, const std::string& path, std::uint64_t bytes);

  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// `bytes` rounded up to whole pages.
constexpr std::uint64_t whole_pages(std::uint64_t bytes) noexcept {
  return (bytes + 4095) & ~std::uint64_t{4095};
}

}  // namespace flugs::bench
