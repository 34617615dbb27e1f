#pragma once

#include <cstdint>

#include "flugs/status.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

/// The medium as the allocator sees it: the same for a file and for a buffer.
class SegmentSource {
 public:
  virtual ~SegmentSource() = default;
  /// Makes [offset, offset + bytes) of the pool usable: durably allocated on the medium, reading
  /// zero unless it was provided before. Doing it twice is harmless. Fails with kOutOfSpace or
  /// kIoError; then space that was provided stays usable.
  virtual Status provide(std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Gives the blocks of the range back to the file system. Then it reads zero, and must be
  /// provided again before it is used. A failure means that the medium cannot: nothing has changed.
  virtual Status punch(std::uint64_t offset, std::uint64_t bytes) = 0;
  /// Protocol hole-count: the pool says durably that at most `bytes` of its space are holes.
  virtual void persist_hole_bytes(std::uint64_t bytes, Persister& persister) noexcept = 0;
  /// Touches every page of the range, without changing a byte, so that writers meet no page fault.
  virtual void populate(std::uint64_t offset, std::uint64_t bytes) noexcept = 0;
};

}  // namespace flugs::pmem
