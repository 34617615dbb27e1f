#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "flugs/function_ref.h"
#include "pmem/extent_allocator.h"

namespace flugs::pmem {

/// What opening has claimed of a pool, neighbours merged: so a claim mostly makes a piece longer.
/// What is free follows from it in one pass, when all claims are known. Thread-safety: none.
class ClaimMap {
 public:
  /// Enters a piece. False, and nothing done, when part of it is in already.
  bool add(Extent piece);
  /// Calls visit(piece) for what is not in, between `begin` and `end`, in ascending order. No piece
  /// that is in reaches over `begin` or `end`.
  void for_each_gap(std::uint64_t begin, std::uint64_t end, FunctionRef<void(Extent)> visit) const;
  std::uint64_t bytes() const noexcept { return bytes_; }
  void clear() noexcept;

 private:
  std::map<std::uint64_t, std::uint64_t> ends_;  // offset -> end; no end is another's offset
  std::uint64_t bytes_ = 0;
};

}  // namespace flugs::pmem
