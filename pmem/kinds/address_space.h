#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/check.h"
#include "flugs/status.h"

namespace flugs::pmem {

/// Address space of this process that nothing else gets. A pool is mapped over its front, and grows
/// into the rest. It costs neither memory nor page tables. Unmaps all of it at the end.
class AddressSpace {
 public:
  AddressSpace() noexcept = default;
  /// At least `bytes_min` bytes, at a multiple of `alignment`: four times as many and at least 1 TB
  /// (kPoolBytesMax at most), or as much of that as the kernel gives. With a limit on the process's
  /// address space (RLIMIT_AS): `bytes_min`. kOutOfSpace: the kernel does not give that many.
  static Result<AddressSpace> reserve(std::uint64_t bytes_min, std::uint64_t alignment,
                                      const std::string& where);
  AddressSpace(AddressSpace&& other) noexcept { *this = std::move(other); }
  AddressSpace& operator=(AddressSpace&& other) noexcept;
  ~AddressSpace();

  std::byte* base() const noexcept { return base_; }
  std::uint64_t bytes() const noexcept { return bytes_; }
  /// Mapping something at `offset` has failed, so the kernel may have given the rest away: this
  /// ends there from now on.
  void cut(std::uint64_t offset) noexcept {
    FLUGS_CHECK(offset <= bytes_);
    bytes_ = offset;
  }

 private:
  std::byte* base_ = nullptr;
  std::uint64_t bytes_ = 0;
};

}  // namespace flugs::pmem
