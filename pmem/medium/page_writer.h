#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace flugs::pmem {

/// The least limit from which on pieces may be written by a PageWriter: a page.
inline constexpr std::uint64_t kDirectBytesMin = 4096;

/// Makes whole pages of a pool durable without a journal, on a medium that has one.
/// pmem/journal/direct_writer.h has the one that is used.
class PageWriter {
 public:
  virtual ~PageWriter() = default;

  /// Makes these pages durable. Only their owner can reach them: neither another thread nor a
  /// pointer in the pool. Waits for the device. False: they are not durable, and the owner must
  /// flush them. Thread-safety: any thread.
  virtual bool write(std::span<std::byte> pages) noexcept = 0;
};

}  // namespace flugs::pmem
