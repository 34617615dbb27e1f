#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory_resource>
#include <string>
#include <vector>

#include "columns/cells/chunk_geometry.h"
#include "columns/index/hint_index_layout.h"
#include "columns/index/hint_line.h"
#include "columns/index/hint_slot.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/space/chunk_list.h"

namespace flugs::pmem {
class WarmList;
}

namespace flugs::columns {

/// The segments of a hint index: which offsets of the pool are segments of this index, and the ways
/// through a segment and those that continue it. Within a segment, the fingerprint chooses an
/// entry's home line; the entry is in this line or, as long as lines are full, behind it. A full
/// line never has an unused slot again. So a walk ends at the first line that has one.
///
/// Segments lie in slabs: 4 KB, then doubling, up to 2 MB.
///
/// Thread-safety: any thread; load, add and release_all: one thread at a time.
class HintSegments {
 public:
  using Segment = HintSegmentLayout;
  static constexpr std::uint64_t kSegmentBytes = sizeof(Segment);
  static constexpr std::size_t kSlotsInSegment = std::size_t{Segment::kLines} * Segment::kSlots;

  HintSegments(pmem::Pool& pool, HintIndexLayout& layout, std::string owner);

  /// Opening: claims the slabs. Fails with kCorrupt.
  Status load();
  /// A segment that was never used. The pool counts segments without a word of the directory, and
  /// records nothing else about them. Flushes the count, without a fence. Fails with kOutOfSpace.
  Result<std::uint64_t> add(pmem::Persister& persister);
  /// The table was dropped: gives all slabs back.
  void release_all();
  std::uint64_t bytes_in_pool() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  void add_pages(pmem::WarmList& pages) const;

  /// Whether a segment of this index, in a slab that existed at opening, lies at the offset.
  bool is_segment(std::uint64_t offset) const noexcept;
  Segment* at(std::uint64_t word) const noexcept {
    return reinterpret_cast<Segment*>(base_ + hint_word::offset_of(word));
  }
  std::uint64_t offset_of(const Segment& segment) const noexcept {
    return static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(&segment) - base_);
  }
  /// The segment that continues a full one. Null: none, or bytes of the pool that name no segment
  /// of this index. `hops` counts the steps of a walk, from 0: a chain longer than the index has
  /// segments ends.
  Segment* next_of(const Segment& segment, std::uint64_t& hops) const noexcept;
  /// Adds the segment of a word and those that continue it to `chain`, which is empty; none if they
  /// are more than `most`.
  void chain_of(std::uint64_t word, std::size_t most, std::pmr::vector<Segment*>& chain) const;

  enum class Walked : std::uint8_t { kGoOn, kEnd, kFound };
  /// Calls read_line(slots), which returns Walked, for the lines in which an entry may be: kEnd at
  /// a line with an unused slot. True if it returned kFound.
  template <typename F>
  bool walk(std::uint64_t word, std::uint32_t fingerprint, F&& read_line) const;
  /// Calls visit(slots, HintLine) for the same lines, until it returns true.
  template <typename F>
  bool walk_lines(std::uint64_t word, std::uint32_t fingerprint, F&& visit) const;
  /// Calls visit(line) for every line from home to that of the slot, and the links of full
  /// segments.
  template <typename F>
  void for_each_line_to(std::uint64_t word, std::uint32_t fingerprint, const std::uint64_t* slot,
                        F&& visit) const;
  /// Sets `free` to a free slot of the line, unless it is set. Prefers a slot that was emptied to
  /// an unused one, since unused slots end look-ups.
  static void note_free(std::uint64_t* slots, const HintLine& line, std::uint64_t*& free) noexcept {
    if (free != nullptr || line.free == 0) return;
    const std::uint32_t emptied = line.free & ~line.unused;
    free = slots + std::countr_zero(emptied != 0 ? emptied : line.free);
  }
  /// Null: no slot is free.
  std::uint64_t* find_free(std::uint64_t word, std::uint32_t fingerprint) const noexcept;

  Status corrupt(const char* what, std::uint64_t expected, std::uint64_t found) const;
  pmem::Pool& pool() const noexcept { return pool_; }
  const std::string& owner() const noexcept { return owner_; }

 private:
  static constexpr unsigned kSlabMapShift = 21;
  static constexpr ChunkGeometry kSlabs{0, 9};
  static_assert((kSegmentBytes << kSlabs.largest_log2) == (std::uint64_t{1} << kSlabMapShift));

  void map_slabs();
  bool is_new_segment(std::uint64_t offset) const noexcept;
  void put_slab(pmem::Extent slab);

  pmem::Pool& pool_;
  std::byte* const base_;  // of the pool
  HintIndexLayout& layout_;
  std::string owner_;
  std::atomic<std::uint64_t> bytes_{0};
  pmem::ChunkList slabs_;
  std::vector<std::uint64_t> slab_offsets_;
  // Slabs found at opening, in the order of their offsets.
  std::vector<pmem::Extent> slabs_in_order_;
  /// For each 2 MB of the pool, from the first slab to the last: the slab with the lowest offset
  /// that begins or continues there, and its number in `slabs_in_order_`.
  struct SlabAt {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;
    std::size_t number = 0;
  };
  std::vector<SlabAt> slab_at_;
  std::uint64_t first_slab_at_ = 0;  // number of 2 MB pieces before the first slab
  /// Slabs added after opening, the newest first: read without a lock.
  struct NewSlab {
    pmem::Extent extent;
    const NewSlab* older;
  };
  std::forward_list<NewSlab> new_slabs_;
  std::atomic<const NewSlab*> newest_slab_{nullptr};
};

template <typename F>
bool HintSegments::walk(std::uint64_t word, std::uint32_t fingerprint, F&& read_line) const {
  if (word == 0) return false;
  std::uint32_t line = hint_slot::home_of(fingerprint);
  std::uint64_t hops = 0;
  for (Segment* segment = at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    for (std::uint32_t walked = 0; walked < Segment::kLines; ++walked) {
      const Walked next = read_line(segment->slots[line]);
      if (next != Walked::kGoOn) return next == Walked::kFound;
      line = line + 1 == Segment::kLines ? 0 : line + 1;
    }
  }
  return false;
}

template <typename F>
bool HintSegments::walk_lines(std::uint64_t word, std::uint32_t fingerprint, F&& visit) const {
  return walk(word, fingerprint, [&](std::uint64_t* slots) {
    const HintLine line = read_hint_line(slots, fingerprint);
    if (visit(slots, line)) return Walked::kFound;
    return line.unused != 0 ? Walked::kEnd : Walked::kGoOn;
  });
}

template <typename F>
void HintSegments::for_each_line_to(std::uint64_t word, std::uint32_t fingerprint,
                                    const std::uint64_t* slot, F&& visit) const {
  std::uint32_t line = hint_slot::home_of(fingerprint);
  std::uint64_t hops = 0;
  for (Segment* segment = at(word); segment != nullptr; segment = next_of(*segment, hops)) {
    for (std::uint32_t walked = 0; walked < Segment::kLines; ++walked) {
      const std::uint64_t* slots = segment->slots[line];
      visit(slots);
      if (slot >= slots && slot < slots + Segment::kSlots) return;
      line = line + 1 == Segment::kLines ? 0 : line + 1;
    }
    visit(&segment->next);
  }
}

}  // namespace flugs::columns
