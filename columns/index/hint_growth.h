#pragma once

#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <span>
#include <vector>

#include "columns/index/hint_directory.h"
#include "columns/index/hint_index_layout.h"
#include "columns/index/hint_locks.h"
#include "columns/index/hint_segments.h"
#include "flugs/status.h"

namespace flugs::columns {

/// Makes a hint index grow: splits a segment, rewrites it without emptied slots, continues it in a
/// further one, or doubles the directory. It keeps the segments that are free.
/// Thread-safety: one thread at a time; other threads look up, erase and add entries meanwhile.
class HintGrowth {
 public:
  HintGrowth(HintIndexLayout& layout, HintDirectory& directory, HintSegments& segments,
             HintLocks& locks) noexcept
      : layout_(layout), directory_(directory), segments_(segments), locks_(locks) {}

  /// Makes room for another entry of the fingerprint and those beside it. Fails with kOutOfSpace;
  /// then nothing has changed.
  Status make_room(std::uint32_t fingerprint, pmem::Persister& persister);
  void release_all() noexcept { unnamed_.clear(); }

 private:
  using Segment = HintSegments::Segment;
  using Segments = std::pmr::vector<std::uint64_t>;  // offsets

  Status begin(pmem::Persister& persister);
  Result<std::uint64_t> take_unnamed_segment(pmem::Persister& persister);
  Result<std::uint64_t> take_segment(pmem::Persister& persister);
  Result<Segments> take_segments(std::size_t count, pmem::Persister& persister,
                                 std::pmr::memory_resource& memory);
  void give_back(std::span<const std::uint64_t> segments, pmem::Persister& persister);
  /// Chains the segments, and makes them hold `slots` and nothing else.
  void fill(std::span<const std::uint64_t> segments, std::span<const std::uint64_t> slots) noexcept;
  void erase_again(std::span<Segment* const> replaced,
                   std::span<const std::uint64_t> copied) noexcept;
  Status rearrange(std::uint32_t fingerprint, pmem::Persister& persister, bool& wants_doubling);
  Status change(const HintDirectory::Block& block, std::uint64_t old_word,
                std::span<const std::uint64_t> lower, std::span<const std::uint64_t> upper,
                pmem::Persister& persister, std::pmr::memory_resource& memory);
  Status go_on(Segment& segment, pmem::Persister& persister);

  HintIndexLayout& layout_;
  HintDirectory& directory_;
  HintSegments& segments_;
  HintLocks& locks_;
  // Segments that neither the pool nor recovery names: all but the first of a replaced chain, or
  // segments taken in vain. The list is lost at closing, and then they stay unused until the table
  // is dropped.
  std::vector<std::uint64_t> unnamed_;  // offsets
};

}  // namespace flugs::columns
