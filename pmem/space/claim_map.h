#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "flugs/function_ref.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::pmem {

/// The extents that opening has claimed of a pool. Adjacent extents are merged, so most claims only
/// make a piece longer. When all claims are known, one pass over the gaps gives the free extents.
/// Thread-safety: none.
class ClaimMap {
 public:
  /// Enters a piece. Returns false, and does nothing, if a part of the piece is already in.
  bool add(Extent piece);
  /// Calls visit(piece) for each gap between `begin` and `end`, in ascending order. No piece may
  /// reach over `begin` or `end`.
  void for_each_gap(std::uint64_t begin, std::uint64_t end, FunctionRef<void(Extent)> visit) const;
  std::uint64_t bytes() const noexcept { return bytes_; }
  void clear() noexcept;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // offset -> end; no end is another's offset
  std::uint64_t bytes_ = 0;
};

}  // namespace flugs::pmem
