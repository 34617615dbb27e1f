// SegmentAllocator gives free space back to the file system, and takes it again.

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "pmem/space/segment_allocator.h"

namespace flugs::pmem {

namespace {

/// What is given back at a time: a writer that needs space waits for that, a few milliseconds.
constexpr std::uint64_t kBatchBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kPunchPageBytes = std::uint64_t{2} << 20;
static_assert(kBatchBytes % kPunchPageBytes == 0);
/// A smaller hole is not worth its system call, nor the extent that it cuts in the file system.
constexpr std::uint64_t kHoleUnitsMin = 16;  // 64 KB
constexpr std::uint64_t kSlackPart = 16;

constexpr std::uint64_t rounded_down(std::uint64_t bytes, std::uint64_t step) noexcept {
  return bytes / step * step;
}

}  // namespace

/// At least as many bytes as are holes. Under grow_mutex_.
void SegmentAllocator::set_hole_bytes(std::uint64_t bytes) {
  hole_bytes_ = bytes;
  source_.persist_hole_bytes(bytes, grow_persister_);
}

void SegmentAllocator::forget_holes() {
  const std::scoped_lock lock(grow_mutex_);
  set_hole_bytes(0);
}

/// Under map_mutex_. Holes as far as they are known: some of holes_ may have been free space when
/// an earlier process ended.
std::uint64_t SegmentAllocator::likely_hole_bytes() const noexcept {
  if (has_finished_claims_) return std::min(holes_.free_bytes(), hole_bytes_.load());
  std::uint64_t unclaimed = 0;
  for (const Arena& arena : arenas_) unclaimed += arena.allocated_limit - arena.begin;
  unclaimed -= claimed_bytes();
  return std::min(unclaimed, hole_bytes_.load());
}

// Protocol hole-punch. Under grow_mutex_; the pieces are free, and no thread can take them
// meanwhile.
//   step  store                   made durable by     power cut just after it: recovery
//   1     hole_bytes, greater     hole-count          takes more free space for holes than there
//                                                     are: it is provided before it is used
//   2     blocks given back       the file system     finds holes, or blocks that are still there
// Must hold:  1 before 2, else opening would take the pool for a copy without its zeros, and fill
//             all holes.
//             The pointers to the pieces be durably gone before 2 (ExtentAllocator::release), else
//             data would be lost.
void SegmentAllocator::give_back(Slack slack) {
  punch_again(slack);
  for (;;) {
    while (writers_waiting_.load() != 0) std::this_thread::yield();
    const std::scoped_lock lock(grow_mutex_);
    if (!can_punch_) return;
    const std::vector<Extent> pieces = take_excess(slack);
    if (pieces.empty()) return;
    std::uint64_t bytes = 0;
    for (const Extent& piece : pieces) bytes += piece.bytes;
    set_hole_bytes(hole_bytes_ + bytes);
    punch(pieces);
  }
}

/// Under map_mutex_.
std::uint64_t SegmentAllocator::slack_bytes(Slack slack) const noexcept {
  return slack == Slack::kNone ? 0 : std::max(ahead_bytes(), used_bytes_ / kSlackPart);
}

/// Takes free pieces, the largest first, until a batch is full or no more than the slack is left.
std::vector<Extent> SegmentAllocator::take_excess(Slack slack) {
  const std::scoped_lock map_lock(map_mutex_);
  std::vector<Extent> pieces;
  if (!has_finished_claims_) return pieces;
  const std::uint64_t kept = slack_bytes(slack);
  std::uint64_t budget = kBatchBytes;
  while (free_.free_bytes() > kept && budget != 0) {
    const Extent piece = to_punch(std::min(free_.free_bytes() - kept, budget));
    if (piece.bytes == 0) break;
    FLUGS_CHECK(free_.take_at(piece));
    pieces.push_back(piece);
    budget -= std::min(budget, piece.bytes);
  }
  return pieces;
}

/// Up to `most` bytes at the end of the largest free piece: whole huge pages, or whole pages if it
/// has none of the former.
Extent SegmentAllocator::to_punch(std::uint64_t most) const noexcept {
  const Extent whole = free_.largest();
  const std::uint64_t end = whole.offset + whole.bytes;
  for (const std::uint64_t step :
       {kPunchPageBytes, std::max<std::uint64_t>(unit_bytes_, kPageBytes)}) {
    const std::uint64_t last = rounded_down(end, step);
    const std::uint64_t first = round_up(whole.offset, step);
    const std::uint64_t bytes = last > first ? std::min(last - first, rounded_down(most, step)) : 0;
    if (bytes >= kHoleUnitsMin * unit_bytes_) return {last - bytes, bytes};
  }
  return {};
}

/// The header counts the pieces already.
void SegmentAllocator::punch(std::span<const Extent> pieces) {
  std::uint64_t failed_bytes = 0;
  for (const Extent& piece : pieces) {
    can_punch_ = can_punch_ && source_.punch(piece.offset, piece.bytes).ok();
    const std::scoped_lock map_lock(map_mutex_);
    FLUGS_CHECK((can_punch_ ? holes_ : free_).add(piece));
    if (!can_punch_) failed_bytes += piece.bytes;
  }
  if (failed_bytes != 0) set_hole_bytes(hole_bytes_ - failed_bytes);
}

/// After opening, holes_ has all free pieces, whether they are holes or not. If many are not, or if
/// no slack is wanted, all of them become holes. They stay in the map: no thread takes from it
/// without grow_mutex_.
void SegmentAllocator::punch_again(Slack slack) {
  bool is_first = true;
  std::uint64_t from = 0;
  for (;;) {
    while (writers_waiting_.load() != 0) std::this_thread::yield();
    const std::scoped_lock lock(grow_mutex_);
    std::uint64_t bytes = 0;
    Extent piece;
    {
      const std::scoped_lock map_lock(map_mutex_);
      bytes = holes_.free_bytes();
      const std::uint64_t none = bytes - std::min(bytes, hole_bytes_.load());
      if (is_first && slack == Slack::kSome && none <= slack_bytes(slack)) return;
      piece = holes_.first_from(from);
    }
    is_first = false;
    const std::uint64_t step = std::max<std::uint64_t>(unit_bytes_, kPageBytes);
    const std::uint64_t begin = round_up(std::max(piece.offset, from), step);
    const std::uint64_t end =
        std::min(rounded_down(piece.offset + piece.bytes, step), begin + kBatchBytes);
    if (piece.bytes == 0 || !can_punch_) return;
    from = begin < end ? end : piece.offset + piece.bytes;
    if (begin >= end) continue;
    if (hole_bytes_ < bytes) set_hole_bytes(bytes);
    can_punch_ = source_.punch(begin, end - begin).ok();
  }
}

// Protocol hole-fill. Under grow_mutex_.
//   step  store                   made durable by     power cut just after it: recovery
//   1     blocks of the medium    provide()           takes them for a hole: provides them again
//   2     hole_bytes, smaller     hole-count          counts them as free
// Must hold:  1 before 2, else opening would take the pool for a copy without its zeros.
//             1 before any extent is cut from it, else stores could find the medium full: SIGBUS.
Status SegmentAllocator::fill_hole(std::uint64_t bytes, std::uint64_t step, bool populates) {
  std::optional<Extent> piece;
  {
    const std::scoped_lock map_lock(map_mutex_);
    piece = holes_.take(std::min(std::max(bytes, step), holes_.largest_bytes()));
  }
  FLUGS_CHECK(piece.has_value());  // no other thread takes from holes_ meanwhile
  Status status = source_.provide(piece->offset, piece->bytes);
  if (status.code() == StatusCode::kOutOfSpace && piece->bytes > bytes) {
    // The medium may have less than a step, but enough.
    {
      const std::scoped_lock map_lock(map_mutex_);
      FLUGS_CHECK(holes_.add({piece->offset + bytes, piece->bytes - bytes}));
    }
    piece->bytes = bytes;
    status = source_.provide(piece->offset, bytes);
  }
  if (status.ok() && populates) source_.populate(piece->offset, piece->bytes);
  return end_filling(*piece, std::move(status));
}

/// Step 2, if step 1 went well: `provided`. Until now no other thread had the piece.
Status SegmentAllocator::end_filling(Extent piece, Status provided) {
  std::uint64_t left = 0;
  {
    const std::scoped_lock map_lock(map_mutex_);
    FLUGS_CHECK((provided.ok() ? free_ : holes_).add(piece));
    left = holes_.free_bytes();
  }
  if (provided.ok() && left < hole_bytes_) set_hole_bytes(left);
  return provided;
}

/// The same for `bytes` of the first hole that has them before `end`, if no free piece with them
/// lies before it.
Status SegmentAllocator::fill_hole_below(std::uint64_t bytes, std::uint64_t end) {
  writers_waiting_.fetch_add(1);
  const std::scoped_lock lock(grow_mutex_);
  writers_waiting_.fetch_sub(1);
  std::optional<Extent> piece;
  {
    const std::scoped_lock map_lock(map_mutex_);
    const std::optional<std::uint64_t> free = free_.first_fit(bytes, end);
    const std::optional<std::uint64_t> hole = holes_.first_fit(bytes, end);
    if (!hole || (free && *free < *hole)) return {};
    piece = Extent{*hole, bytes};
    FLUGS_CHECK(holes_.take_at(*piece));
  }
  return end_filling(*piece, source_.provide(piece->offset, piece->bytes));
}

/// The last resort of a full pool: a piece that is large enough may be partly a hole.
Status SegmentAllocator::fill_all_holes() {
  for (;;) {
    std::uint64_t largest = 0;
    {
      const std::scoped_lock map_lock(map_mutex_);
      largest = holes_.largest_bytes();
    }
    if (largest == 0) {
      set_hole_bytes(0);
      return {};
    }
    if (Status s = fill_hole(largest, largest, false); !s.ok()) return s;
  }
}

/// For `wanted` bytes that would have to leave the reserve. Fills all holes and returns
/// true when there are holes, and enough free bytes in all.
Result<bool> SegmentAllocator::fill_holes_beside(std::uint64_t wanted, Purpose purpose) {
  writers_waiting_.fetch_add(1);
  const std::scoped_lock lock(grow_mutex_);
  writers_waiting_.fetch_sub(1);
  {
    const std::scoped_lock map_lock(map_mutex_);
    std::uint64_t bytes = free_.free_bytes() + holes_.free_bytes();
    for (const Arena& arena : arenas_) bytes += arena.end - arena.allocated_limit;
    if (holes_.free_bytes() == 0 || bytes < kept_bytes(purpose) + wanted) return false;
  }
  if (Status s = fill_all_holes(); !s.ok()) return of_medium(std::move(s));
  return true;
}

}  // namespace flugs::pmem
