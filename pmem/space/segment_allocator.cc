#include "pmem/space/segment_allocator.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/check.h"
#include "base/shared_words.h"

namespace flugs::pmem {

namespace {

/// A store that reaches the medium as a whole or not at all.
void store_word(std::uint64_t& word, std::uint64_t value) noexcept {
  std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_relaxed);
}

/// Step of touched_limit: 8 MB for segments of 64 MB. So a reopened pool takes at most that much
/// zero space for used, and one fence pays for 8 MB of extents.
std::uint64_t touch_step(std::uint64_t segment_bytes, std::uint64_t unit_bytes) noexcept {
  return std::max(segment_bytes / 8 / unit_bytes * unit_bytes, unit_bytes);
}

/// In the message of each call that found the pool full, and in no other.
constexpr std::string_view kWanted = " bytes wanted, ";

}  // namespace

bool is_lack_of_bytes(const Status& status) noexcept {
  return status.code() == StatusCode::kOutOfSpace &&
         status.message().find(kWanted) != std::string_view::npos;
}

SegmentAllocator::SegmentAllocator(Medium& medium, SegmentSource& source,
                                   std::span<ArenaRecord> arenas, const SpaceShape& shape,
                                   Origin origin)
    : medium_(medium),
      source_(source),
      unit_bytes_(shape.unit_bytes),
      segment_bytes_(shape.segment_bytes),
      touch_step_bytes_(touch_step(shape.segment_bytes, shape.unit_bytes)),
      grow_persister_(medium),
      hole_bytes_(shape.hole_bytes),
      touch_persister_(medium),
      has_finished_claims_(origin == Origin::kCreated) {
  std::uint64_t previous_end = 0;
  for (ArenaRecord& record : arenas) {
    const bool is_last = &record == &arenas.back();
    const Arena arena{.begin = record.offset,
                      .end = is_last ? shape.end : record.offset + record.bytes,
                      .record = &record,
                      .allocated_limit = record.allocated_limit,
                      .touched_limit = record.touched_limit,
                      .fresh_limit = record.touched_limit};
    arenas_.push_back(arena);
    overhead_bytes_ += arena.begin - previous_end;
    previous_end = arena.end;
    if (has_finished_claims_ && arena.allocated_limit > arena.begin)
      FLUGS_CHECK(free_.add({arena.begin, arena.allocated_limit - arena.begin}));
  }
  behind_arenas_bytes_ = medium_.bytes() - std::min(medium_.bytes(), previous_end);
}

SegmentAllocator::~SegmentAllocator() {
  grower_.request_stop();
  space_wanted_.notify_all();
}

std::uint64_t SegmentAllocator::round_up(std::uint64_t bytes, std::uint64_t step) const noexcept {
  return (bytes + step - 1) / step * step;
}

SegmentAllocator::Arena* SegmentAllocator::arena_of(Extent extent) noexcept {
  for (Arena& arena : arenas_) {
    if (extent.offset < arena.begin || extent.offset >= arena.allocated_limit) continue;
    return extent.bytes <= arena.allocated_limit - extent.offset ? &arena : nullptr;
  }
  return nullptr;
}

Result<Extent> SegmentAllocator::allocate(std::uint64_t bytes, Persister& persister,
                                          Purpose purpose, Zeros zeros) {
  if (bytes == 0)
    return Status(StatusCode::kInvalidArgument,
                  "the size of an extent is 0 bytes, must be 1 or more");
  if (bytes > medium_.bytes()) return out_of_space(bytes, purpose, Status());
  const std::uint64_t wanted = round_up(bytes, unit_bytes_);
  if (Status s = medium_.check_writable(wanted); !s.ok()) return s;
  for (;;) {
    std::optional<Extent> extent;
    std::uint64_t dirty_bytes = 0;
    bool is_reserved = false;
    {
      const std::scoped_lock lock(map_mutex_);
      note_write(SharedWord::kSpace, &map_mutex_);
      if (!has_finished_claims_) {
        return Status(StatusCode::kBusy, "the pool is still being opened");
      }
      extent = free_.take(wanted);
      if (extent && !has_reserve(purpose)) {
        FLUGS_CHECK(free_.add(*extent));
        is_reserved = true;
        extent.reset();
      }
      if (extent) dirty_bytes = hand_out(*extent);
      FLUGS_DCHECK(dirty_bytes <= wanted);
      if (free_.free_bytes() < ahead_bytes()) space_wanted_.notify_one();
    }
    if (extent) {
      std::byte* const begin = medium_.base() + extent->offset;
      if (zeros == Zeros::kFlushed)
        persister.zero(begin, dirty_bytes, "extent-zero/1");
      else
        persister.zero_unshared(begin, dirty_bytes, "extent-zero/1");
      return *extent;
    }
    if (is_reserved) {
      // Side by side with a hole the free space may be enough.
      const Result<bool> filled = fill_holes_beside(wanted, purpose);
      if (!filled.ok()) return out_of_space(bytes, purpose, filled.status());
      if (*filled) continue;
      return out_of_space(
          bytes, purpose,
          at_largest(
              "no free piece is large enough beside what is kept for deletions and merges: "));
    }
    const Status status = provide_for(wanted);
    if (!status.ok()) {
      if (status.code() == StatusCode::kOutOfSpace) return out_of_space(bytes, purpose, status);
      return status;
    }
  }
}

/// The medium has refused space: says what to do.
Status SegmentAllocator::of_medium(Status status) {
  if (status.code() != StatusCode::kOutOfSpace) return status;
  return Status(status.code(),
                fmt::format("{}: the medium is full, or a quota: make room there, and writes go on "
                            "without reopening",
                            status.message()));
}

/// Says what to do. `why` is what the pool still has, if it has something.
Status SegmentAllocator::at_largest(std::string_view why) const {
  return Status(StatusCode::kOutOfSpace,
                fmt::format("{}the pool has reached its largest size, {} bytes "
                            "(OpenOptions::max_bytes): merge the tables, or let the merge by "
                            "policy do it, and try again; or enlarge it with Database::grow or "
                            "'flugs pool grow', delete rows and merge, or drop a table",
                            why, medium_.bytes()));
}

// A piece that is partly a hole counts as two.
Result<Extent> SegmentAllocator::allocate_below(std::uint64_t bytes, std::uint64_t end,
                                                Persister& persister) {
  FLUGS_CHECK(bytes != 0);
  const std::uint64_t wanted = bytes <= end ? round_up(bytes, unit_bytes_) : bytes;
  if (bytes <= end)
    if (Status s = of_medium(fill_hole_below(wanted, end)); !s.ok()) return s;
  std::optional<Extent> extent;
  std::uint64_t dirty_bytes = 0;
  {
    const std::scoped_lock lock(map_mutex_);
    note_write(SharedWord::kSpace, &map_mutex_);
    FLUGS_CHECK(has_finished_claims_);
    if (bytes <= end) extent = free_.take_below(wanted, end);
    if (extent) dirty_bytes = hand_out(*extent);
  }
  if (!extent)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("{} bytes before offset {} wanted, and not free", bytes, end));
  persister.zero_unshared(medium_.base() + extent->offset, dirty_bytes, "extent-zero/1");
  return *extent;
}

/// Accounts for an extent just taken out of the free map, under map_mutex_. Returns how many bytes
/// at its front may be other than zero.
std::uint64_t SegmentAllocator::hand_out(Extent extent) {
  touch(extent);
  Arena& arena = *arena_of(extent);
  const std::uint64_t end = extent.offset + extent.bytes;
  const std::uint64_t dirty_end = std::clamp(arena.fresh_limit, extent.offset, end);
  arena.fresh_limit = std::max(arena.fresh_limit, end);
  used_bytes_ += extent.bytes;
  return dirty_end - extent.offset;
}

// Protocol extent-touch. Under map_mutex_, before the extent is handed out.
//   step  store                    made durable by    power cut just after it: recovery
//   1     arena.touched_limit      persist (8 bytes)  takes the space below for used: it zeroes
//                                                     what no owner claims before handing it out
// Must hold:  1 before the owner stores into the extent, else a later process would hand out space
//             that is not zero as zero.
// Need not:   anything about the extent itself. It has no owner until one publishes a pointer to
//             it; a power cut before that leaves it free.
//
// Protocol extent-zero. In allocate(), when space was used before.
//   step  store                    made durable by    power cut just after it: recovery
//   1     zeros in the extent      the owner's fence  finds the extent free: nothing points to it
// Must hold:  1 before the owner publishes the extent: the owner's own next fence does both.
void SegmentAllocator::touch(Extent extent) {
  Arena* arena = arena_of(extent);
  FLUGS_CHECK(arena != nullptr);
  const std::uint64_t end = extent.offset + extent.bytes;
  if (end <= arena->touched_limit) return;
  const std::uint64_t step_end = arena->begin + round_up(end - arena->begin, touch_step_bytes_);
  arena->touched_limit = std::min(step_end, arena->allocated_limit);
  FLUGS_CHECK(end <= arena->touched_limit);
  store_word(arena->record->touched_limit, arena->touched_limit);
  touch_persister_.persist(&arena->record->touched_limit, sizeof(std::uint64_t), "extent-touch/1");
}

void SegmentAllocator::release(Extent extent) {
  FLUGS_CHECK(extent.bytes != 0 && extent.bytes <= medium_.bytes());
  FLUGS_CHECK(extent.offset % unit_bytes_ == 0);
  extent.bytes = round_up(extent.bytes, unit_bytes_);
  const std::scoped_lock lock(map_mutex_);
  FLUGS_CHECK(has_finished_claims_);
  FLUGS_CHECK(arena_of(extent) != nullptr);
  FLUGS_CHECK(free_.add(extent));  // released twice
  FLUGS_CHECK(used_bytes_ >= extent.bytes);
  used_bytes_ -= extent.bytes;
  end_loan_of_reserve();
}

Status SegmentAllocator::claim(Extent extent, std::string_view owner) {
  const auto corrupt = [&](std::string_view what) {
    return Status(StatusCode::kCorrupt, fmt::format("{}: extent of {} bytes at offset {} {}", owner,
                                                    extent.bytes, extent.offset, what));
  };
  if (extent.bytes == 0 || extent.offset % unit_bytes_ != 0) {
    return corrupt(fmt::format("is empty or does not begin at a multiple of {}", unit_bytes_));
  }
  if (extent.bytes > medium_.bytes()) return corrupt("lies outside of the pool");
  extent.bytes = round_up(extent.bytes, unit_bytes_);
  const Arena* arena = arena_of(extent);
  if (arena == nullptr) return corrupt("lies outside of the space that the pool has allocated");
  if (extent.offset + extent.bytes > arena->touched_limit) {
    return corrupt(fmt::format("lies above {}, in space never handed out", arena->touched_limit));
  }
  bool is_first = false;
  {
    const std::scoped_lock lock(claim_lock_);
    FLUGS_CHECK(!has_finished_claims_);
    is_first = claims_.add(extent);
  }
  return is_first ? Status() : corrupt("overlaps an extent that has an owner already");
}

void SegmentAllocator::finish_claims() {
  const std::scoped_lock lock(map_mutex_, claim_lock_);
  if (has_finished_claims_) return;
  // Nothing tells which of the free pieces are holes.
  FreeMap& free = hole_bytes_ != 0 ? holes_ : free_;
  for (const Arena& arena : arenas_)
    claims_.for_each_gap(arena.begin, arena.allocated_limit,
                         [&free](Extent gap) { FLUGS_CHECK(free.add(gap)); });
  hole_bytes_ = std::min(hole_bytes_.load(), holes_.free_bytes());
  used_bytes_ = claims_.bytes();
  claims_.clear();
  // The growing thread wakes up at the first allocation, so that opening has the machine for
  // itself.
  has_finished_claims_ = true;
}

std::uint64_t SegmentAllocator::claimed_bytes() const noexcept {
  const std::scoped_lock lock(claim_lock_);
  return claims_.bytes();
}

SpaceReport SegmentAllocator::space() const {
  const std::scoped_lock lock(map_mutex_);
  SpaceReport report;
  report.reserved_bytes = medium_.bytes();
  report.used_bytes = has_finished_claims_ ? used_bytes_ : claimed_bytes();
  report.overhead_bytes = overhead_bytes_ + behind_arenas_bytes_;
  report.reserve_bytes = kept_bytes(Purpose::kNewData);
  report.reservable_bytes = reservable_bytes();
  report.reserve_piece = reserve_.piece;
  report.largest_piece = largest_joined_piece();
  report.refusals = refusals_;
  report.allocated_bytes = report.overhead_bytes;
  for (const Arena& arena : arenas_) {
    report.allocated_bytes += arena.allocated_limit - arena.begin;
  }
  report.hole_bytes = likely_hole_bytes();
  report.allocated_bytes -= report.hole_bytes;
  return report;
}

std::uint64_t SegmentAllocator::free_bytes() const {
  const std::scoped_lock lock(map_mutex_);
  if (has_finished_claims_) return free_.free_bytes() + holes_.free_bytes() - likely_hole_bytes();
  std::uint64_t bytes = 0;
  for (const Arena& arena : arenas_) bytes += arena.allocated_limit - arena.begin;
  return bytes - claimed_bytes() - likely_hole_bytes();
}

Result<Extent> SegmentAllocator::out_of_space(std::uint64_t wanted, Purpose purpose,
                                              const Status& cause) {
  const SpaceReport report = space();
  const std::uint64_t free = free_bytes();
  std::uint64_t largest = 0;
  {
    const std::scoped_lock lock(map_mutex_);
    largest = free_.largest_bytes();
    if (purpose == Purpose::kNewData) ++refusals_;
  }
  std::string why;
  if (free >= wanted) why = fmt::format("; the largest free piece has {}", largest);
  if (!cause.message().empty()) why += fmt::format(": {}", cause.message());
  return Status(StatusCode::kOutOfSpace,
                fmt::format("{}{}{} free, {} of at most {} bytes allocated{}", wanted, kWanted,
                            free, report.allocated_bytes, report.reserved_bytes, why));
}

}  // namespace flugs::pmem
