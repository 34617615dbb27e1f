#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/check.h"

namespace flugs::pmem {

/// A file's bytes, mapped for reading. Stores into them stay in this process.
class FileView {
 public:
  FileView(std::byte* begin, std::uint64_t bytes) noexcept : begin_(begin), bytes_(bytes) {}
  FileView(FileView&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(other.bytes_) {}
  FileView& operator=(FileView&&) = delete;
  ~FileView();

  std::span<std::byte> bytes() const noexcept {
    FLUGS_CHECK(begin_ != nullptr || bytes_ == 0);  // it was not moved away
    return {begin_, bytes_};
  }

 private:
  std::byte* begin_;
  std::uint64_t bytes_;
};

}  // namespace flugs::pmem
