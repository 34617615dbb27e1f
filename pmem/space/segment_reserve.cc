// What SegmentAllocator keeps free for deletions and merges.

#include <algorithm>

#include "base/check.h"
#include "pmem/space/segment_allocator.h"

namespace flugs::pmem {

void SegmentAllocator::keep_reserve(Reserve reserve) {
  const std::scoped_lock lock(map_mutex_);
  reserve_.bytes = std::max(reserve_.bytes, reserve.bytes);
  reserve_.merging = std::max(reserve_.merging, reserve.merging);
  reserve_.piece = std::max(reserve_.piece, reserve.piece);
}

void SegmentAllocator::lend_reserve() noexcept {
  const std::scoped_lock lock(map_mutex_);
  is_reserve_lent_ = true;
}

/// Under map_mutex_. Much is free again, so the next refusal of new data may borrow once more.
void SegmentAllocator::end_loan_of_reserve() noexcept {
  if (is_reserve_lent_ && reservable_bytes() / 2 >= reserve_.bytes + pledged_bytes_)
    is_reserve_lent_ = false;
}

void SegmentAllocator::pledge(std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(map_mutex_);
  pledged_bytes_ += bytes;
}

void SegmentAllocator::end_pledge(std::uint64_t bytes) noexcept {
  const std::scoped_lock lock(map_mutex_);
  FLUGS_CHECK(bytes <= pledged_bytes_);
  pledged_bytes_ -= bytes;
}

/// Under map_mutex_. The part of the reserve that an allocation for this purpose must leave.
std::uint64_t SegmentAllocator::kept_bytes(Purpose purpose) const noexcept {
  switch (purpose) {
    case Purpose::kNewData:
      return reserve_.bytes + pledged_bytes_ -
             (is_reserve_lent_ ? reserve_.merging - reserve_.piece : 0);
    case Purpose::kMerge:
      return reserve_.bytes - reserve_.merging + pledged_bytes_;
    case Purpose::kReclaim:
      break;
  }
  return 0;
}

/// Under map_mutex_. Growing an arena does not change the answer: its free end and what it can grow
/// by count as one piece.
bool SegmentAllocator::has_reserve(Purpose purpose) const noexcept {
  const std::uint64_t kept = kept_bytes(purpose);
  if (kept == 0) return true;
  return reservable_bytes() >= kept &&
         (purpose != Purpose::kNewData || largest_piece() >= reserve_.piece);
}

/// Under map_mutex_. The bytes that Reserve counts.
std::uint64_t SegmentAllocator::reservable_bytes() const noexcept {
  std::uint64_t bytes = free_.reservable_bytes() + holes_.reservable_bytes();
  for (const Arena& arena : arenas_) {
    const std::uint64_t free_end = free_.bytes_ending_at(arena.allocated_limit);
    bytes += Reserve::countable(free_end + arena.end - arena.allocated_limit) -
             Reserve::countable(free_end);
  }
  return bytes;
}

/// Under map_mutex_. Free space beside a hole counts as another piece.
std::uint64_t SegmentAllocator::largest_piece() const noexcept {
  std::uint64_t piece = std::max(free_.largest_bytes(), holes_.largest_bytes());
  for (const Arena& arena : arenas_)
    piece = std::max(
        piece, arena.end - arena.allocated_limit + free_.bytes_ending_at(arena.allocated_limit));
  return piece;
}

/// Under map_mutex_. The same, with holes and the free space beside them side by side. O(pieces).
std::uint64_t SegmentAllocator::largest_joined_piece() const noexcept {
  if (holes_.piece_count() == 0) return largest_piece();
  std::uint64_t largest = largest_piece();
  Extent joined;
  for (;;) {
    const std::uint64_t end = joined.offset + joined.bytes;
    const Extent free = free_.first_from(end);
    const Extent hole = holes_.first_from(end);
    const Extent next =
        hole.bytes == 0 || (free.bytes != 0 && free.offset < hole.offset) ? free : hole;
    if (next.bytes == 0) return largest;
    FLUGS_DCHECK(next.offset >= end);
    joined = next.offset == end ? Extent{joined.offset, joined.bytes + next.bytes} : next;
    std::uint64_t bytes = joined.bytes;
    for (const Arena& arena : arenas_)
      if (arena.allocated_limit == joined.offset + joined.bytes)
        bytes += arena.end - arena.allocated_limit;
    largest = std::max(largest, bytes);
  }
}

}  // namespace flugs::pmem
