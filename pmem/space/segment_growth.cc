// SegmentAllocator takes space from the medium: in the thread that needs it, or ahead of need.

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/check.h"
#include "base/thread.h"
#include "pmem/space/segment_allocator.h"

namespace flugs::pmem {

namespace {

/// Step of the background thread: large enough to make system calls cheap, and small enough (some 5
/// ms on tmpfs) for a writer that must wait for it, and for closing.
constexpr std::uint64_t kSliceBytes = std::uint64_t{4} << 20;
static_assert(kSliceBytes % 65536 == 0);  // of every extent unit
/// The thread keeps the used space divided by this number ready.
constexpr std::uint64_t kAheadPart = 4;
/// How long the background thread waits before it asks a full medium again.
constexpr std::chrono::seconds kFullMediumPause{1};

}  // namespace

/// kSliceBytes is a multiple of every extent unit.
std::uint64_t SegmentAllocator::slice_bytes() const noexcept {
  return std::min(kSliceBytes, segment_bytes_);
}

/// Under map_mutex_. Returns the bytes that the background thread keeps ready: a quarter of the
/// used space, so that a small pool stays small, at least kSliceBytes, at most grow_ahead_bytes_.
std::uint64_t SegmentAllocator::ahead_bytes() const noexcept {
  return std::min(grow_ahead_bytes_, std::max(kSliceBytes, used_bytes_ / kAheadPart));
}

/// How much to grow so that `missing` bytes exist and the arena ends at a multiple of `step` in the
/// pool: then slices cut no huge page in two.
std::uint64_t SegmentAllocator::growth(const Arena& arena, std::uint64_t missing,
                                       std::uint64_t step) const noexcept {
  const std::uint64_t limit = round_up(arena.allocated_limit + missing, step);
  return std::min(limit, arena.end) - arena.allocated_limit;
}

/// Provides space so that an extent of `bytes` can be cut, unless another thread just did.
Status SegmentAllocator::provide_for(std::uint64_t bytes) {
  writers_waiting_.fetch_add(1);
  const std::scoped_lock lock(grow_mutex_);
  writers_waiting_.fetch_sub(1);
  Arena* target = nullptr;
  std::uint64_t missing = 0;
  bool is_in_hole = false;
  bool has_holes = false;
  {
    const std::scoped_lock map_lock(map_mutex_);
    if (free_.largest_bytes() >= bytes) return {};
    is_in_hole = holes_.largest_bytes() >= bytes;
    has_holes = holes_.free_bytes() != 0;
    for (Arena& arena : arenas_) {
      // New space joins the free space at the end of the old.
      const std::uint64_t tail = free_.bytes_ending_at(arena.allocated_limit);
      FLUGS_CHECK(tail < bytes);
      missing = bytes - tail;
      if (arena.end - arena.allocated_limit < missing) continue;
      target = &arena;
      break;
    }
  }
  if (is_in_hole)
    return of_medium(fill_hole(bytes, has_grower_ ? slice_bytes() : segment_bytes_, false));
  if (target == nullptr && has_holes) return of_medium(fill_all_holes());
  if (target == nullptr) {
    return at_largest("");
  }
  // With a thread that grows ahead, a writer that overtakes it waits for just a slice.
  const std::uint64_t unit_step = has_grower_ ? slice_bytes() : segment_bytes_;
  const std::uint64_t step = growth(*target, missing, unit_step);
  Status status = grow(*target, step, false);
  if (status.code() == StatusCode::kOutOfSpace && step != missing)
    status = grow(*target, missing, false);  // the medium may have less than a segment, but enough
  return of_medium(std::move(status));
}

Status SegmentAllocator::move_end(FunctionRef<Result<std::uint64_t>()> steps) {
  const std::scoped_lock lock(grow_mutex_);
  const Result<std::uint64_t> end = steps();
  if (!end.ok()) return end.status();
  const std::scoped_lock map_lock(map_mutex_);
  FLUGS_CHECK(*end >= arenas_.back().end && *end % unit_bytes_ == 0);
  arenas_.back().end = *end;
  behind_arenas_bytes_ = medium_.bytes() - std::min(medium_.bytes(), *end);
  is_at_largest_ = false;
  space_wanted_.notify_one();
  return {};
}

Status SegmentAllocator::grow_by_slice() {
  const std::scoped_lock lock(grow_mutex_);
  for (Arena& arena : arenas_) {
    const std::uint64_t step = growth(arena, slice_bytes() / 2, slice_bytes());
    if (step != 0) return grow(arena, step, false);
  }
  return {};
}

// Protocol segment-grow. Under grow_mutex_.
//   step  store                     made durable by    power cut just after it: recovery
//   1     blocks of the medium      provide()          does not know of them; the next growth asks
//                                                      for the same blocks again
//   2     arena.allocated_limit     persist (8 bytes)  counts them as free
// Must hold:  1 before 2, else stores into the space could find the medium full: SIGBUS.
//             2 before any extent is cut from it, else a pointer could name unknown space.
// Need not:   anything be undone. The space of step 1 belongs to this arena whatever happens.
Status SegmentAllocator::grow(Arena& arena, std::uint64_t bytes, bool populates) {
  FLUGS_CHECK(bytes != 0 && bytes % unit_bytes_ == 0);
  FLUGS_CHECK(bytes <= arena.end - arena.allocated_limit);
  const std::uint64_t begin = arena.allocated_limit;
  Status status = source_.provide(begin, bytes);
  if (!status.ok()) return status;
  if (populates) source_.populate(begin, bytes);
  std::atomic_ref<std::uint64_t>(arena.record->allocated_limit)
      .store(begin + bytes, std::memory_order_relaxed);
  grow_persister_.persist(&arena.record->allocated_limit, sizeof(std::uint64_t), "segment-grow/2");
  {
    const std::scoped_lock map_lock(map_mutex_);
    arena.allocated_limit = begin + bytes;
    FLUGS_CHECK(free_.add({begin, bytes}));
  }
  if (told_growth_) told_growth_(space().allocated_bytes);
  return {};
}

void SegmentAllocator::tell_growth(std::function<void(std::uint64_t)> told) {
  const std::scoped_lock lock(grow_mutex_);
  told_growth_ = std::move(told);
}

void SegmentAllocator::grow_ahead(std::uint64_t bytes) {
  FLUGS_CHECK(!has_grower_);
  {
    const std::scoped_lock lock(map_mutex_);
    grow_ahead_bytes_ = bytes;
  }
  if (bytes == 0) return;
  Result<std::jthread> started =
      start_thread("flugs-grow", [this](const std::stop_token& stop) { run_grower(stop); });
  has_grower_ = started.ok();
  if (has_grower_) {
    grower_ = *std::move(started);
    return;
  }
  // The thread that needs space provides it, as without growing ahead.
  const std::scoped_lock lock(map_mutex_);
  grow_ahead_bytes_ = 0;
}

void SegmentAllocator::run_grower(const std::stop_token& stop) {
  std::unique_lock lock(map_mutex_);
  if (!space_wanted_.wait(lock, stop, [this] { return has_finished_claims_; })) return;
  lock.unlock();
  populate_free_space(stop);
  lock.lock();
  const auto wants_more = [this] { return !is_at_largest_ && free_.free_bytes() < ahead_bytes(); };
  // On a full medium it wants more without end, also when it must stop.
  while (space_wanted_.wait(lock, stop, wants_more) && !stop.stop_requested()) {
    lock.unlock();
    // Its slices follow each other closely: it must give way, or no writer ever gets the mutex.
    while (writers_waiting_.load() != 0) std::this_thread::yield();
    const Status status = grow_slice();
    lock.lock();
    if (!status.ok() && status.code() != StatusCode::kNotFound) {
      // No caller to report to: a writer that runs out of space gets the error of its own attempt.
      space_wanted_.wait_for(lock, stop, kFullMediumPause, [] { return false; });
    }
  }
}

/// Touches the fresh space that exists already, as far as it must be kept ready.
void SegmentAllocator::populate_free_space(const std::stop_token& stop) {
  std::uint64_t budget = 0;
  {
    const std::scoped_lock lock(map_mutex_);
    budget = ahead_bytes();
  }
  for (const Arena& arena : arenas_) {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    {
      const std::scoped_lock lock(map_mutex_);
      begin = arena.fresh_limit;
      end = arena.allocated_limit;
    }
    while (begin < end && budget != 0 && !stop.stop_requested()) {
      while (writers_waiting_.load() != 0) std::this_thread::yield();
      const std::scoped_lock lock(grow_mutex_);  // nothing becomes a hole meanwhile
      if (hole_bytes_ != 0) return;              // touching a hole would fill it
      const std::uint64_t bytes = std::min({kSliceBytes, end - begin, budget});
      source_.populate(begin, bytes);
      begin += bytes;
      budget -= bytes;
    }
  }
}

/// Fails with kNotFound when the pool has its largest size: until that changes, the thread sleeps.
Status SegmentAllocator::grow_slice() {
  const std::scoped_lock lock(grow_mutex_);
  std::uint64_t largest = 0;
  {
    const std::scoped_lock map_lock(map_mutex_);
    largest = holes_.largest_bytes();
  }
  if (largest != 0) return fill_hole(unit_bytes_, slice_bytes(), true);
  for (Arena& arena : arenas_) {
    const std::uint64_t step = growth(arena, unit_bytes_, slice_bytes());
    if (step != 0) return grow(arena, step, true);
  }
  const std::scoped_lock map_lock(map_mutex_);
  is_at_largest_ = true;
  return Status(StatusCode::kNotFound);
}

}  // namespace flugs::pmem
