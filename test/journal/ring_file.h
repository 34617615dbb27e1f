#pragma once

#include <cstddef>
#include <span>

#include "test/journal/sector_file.h"

namespace flugs::test {

/// The file of a crash ring, without a name on /dev/shm: a killed process leaves it, and a power
/// cut does not.
class RingFile {
 public:
  /// What was left; empty: nothing.
  explicit RingFile(const Bytes& left);
  ~RingFile();
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;

  /// A new descriptor. -1: there is no file.
  int open_again() const noexcept;
  /// A new file without bytes, and a descriptor. -1: there is a file.
  int make() noexcept;
  /// The file has its size now.
  void map() noexcept;
  void remove() noexcept;
  /// What the process and the explorer have of it. None: there is no file, or it has no size.
  std::span<std::byte> bytes() const noexcept { return bytes_; }

 private:
  int file_ = -1;
  std::span<std::byte> bytes_;
};

}  // namespace flugs::test
