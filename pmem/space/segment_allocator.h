#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <string_view>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "base/spin_lock.h"
#include "flugs/function_ref.h"
#include "pmem/medium/medium.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/claim_map.h"
#include "pmem/space/extent_allocator.h"
#include "pmem/space/free_map.h"
#include "pmem/space/segment_source.h"

namespace flugs::pmem {

/// The only ExtentAllocator: arenas that grow by segments from the front, and a free map in DRAM.
///
/// Locks, in this order: grow_mutex_ (growing), map_mutex_ (free map, limits), claim_lock_
/// (claims). No fence under map_mutex_ except the rare one of touch().
class SegmentAllocator final : public ExtentAllocator {
 public:
  enum class Origin : std::uint8_t { kCreated, kOpened };

  /// `arenas` lie in the pool and have been checked, or their creator has just written them. In an
  /// opened pool all allocated space is free until it is claimed.
  SegmentAllocator(Medium& medium, SegmentSource& source, std::span<ArenaRecord> arenas,
                   const SpaceShape& shape, Origin origin);
  ~SegmentAllocator() override;

  Result<Extent> allocate(std::uint64_t bytes, Persister& persister, Purpose purpose,
                          Zeros zeros) override;
  Result<Extent> allocate_below(std::uint64_t bytes, std::uint64_t end,
                                Persister& persister) override;
  void keep_reserve(Reserve reserve) override;
  void lend_reserve() noexcept override;
  void pledge(std::uint64_t bytes) noexcept override;
  void end_pledge(std::uint64_t bytes) noexcept override;
  void release(Extent extent) override;
  void give_back(Slack slack) override;
  Status claim(Extent extent, std::string_view owner) override;
  void finish_claims() override;
  void tell_growth(std::function<void(std::uint64_t)> told) override;
  SpaceReport space() const override;
  std::uint32_t unit_bytes() const noexcept override { return unit_bytes_; }
  std::uint64_t free_bytes() const override;

  /// Calls `steps` while nothing else grows; from then on the last arena ends where it says.
  Status move_end(FunctionRef<Result<std::uint64_t>()> steps);
  /// give_back does nothing from now on. Before other threads have the pool.
  void keep_all() noexcept { can_punch_ = false; }
  /// All space of the pool is provided, also what its header takes for holes. While opening.
  void forget_holes();
  /// Provides the first few megabytes, or all of a smaller pool. For the creator.
  Status grow_by_slice();
  /// From finish_claims() on, or from now on if that was before, a thread keeps up to `bytes` free
  /// bytes provided and touched. Called once, before other threads have the pool.
  void grow_ahead(std::uint64_t bytes);

 private:
  struct Arena {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    ArenaRecord* record = nullptr;
    std::uint64_t allocated_limit = 0;  // as in the pool
    std::uint64_t touched_limit = 0;    // as in the pool
    std::uint64_t fresh_limit = 0;      // all space above reads zero in this process
  };

  Result<Extent> out_of_space(std::uint64_t wanted, Purpose purpose, const Status& cause);
  Arena* arena_of(Extent extent) noexcept;
  std::uint64_t claimed_bytes() const noexcept;
  Status at_largest(std::string_view why) const;
  static Status of_medium(Status status);
  std::uint64_t kept_bytes(Purpose purpose) const noexcept;
  bool has_reserve(Purpose purpose) const noexcept;
  void end_loan_of_reserve() noexcept;
  std::uint64_t reservable_bytes() const noexcept;
  std::uint64_t largest_piece() const noexcept;
  std::uint64_t largest_joined_piece() const noexcept;
  void touch(Extent extent);
  std::uint64_t hand_out(Extent extent);
  Status provide_for(std::uint64_t bytes);
  Status grow(Arena& arena, std::uint64_t bytes, bool populates);
  void set_hole_bytes(std::uint64_t bytes);
  std::vector<Extent> take_excess(Slack slack);
  Extent to_punch(std::uint64_t excess) const noexcept;
  void punch(std::span<const Extent> pieces);
  void punch_again(Slack slack);
  std::uint64_t slack_bytes(Slack slack) const noexcept;
  std::uint64_t likely_hole_bytes() const noexcept;
  Status end_filling(Extent piece, Status provided);
  Status fill_hole(std::uint64_t bytes, std::uint64_t step, bool populates);
  Status fill_hole_below(std::uint64_t bytes, std::uint64_t end);
  Status fill_all_holes();
  Result<bool> fill_holes_beside(std::uint64_t wanted, Purpose purpose);
  std::uint64_t slice_bytes() const noexcept;
  std::uint64_t ahead_bytes() const noexcept;
  std::uint64_t growth(const Arena& arena, std::uint64_t missing,
                       std::uint64_t step) const noexcept;
  std::uint64_t round_up(std::uint64_t bytes, std::uint64_t step) const noexcept;

  void run_grower(const std::stop_token& stop);
  void populate_free_space(const std::stop_token& stop);
  Status grow_slice();

  Medium& medium_;
  SegmentSource& source_;
  const std::uint32_t unit_bytes_;
  const std::uint64_t segment_bytes_;
  const std::uint64_t touch_step_bytes_;
  std::uint64_t overhead_bytes_ = 0;

  Mutex grow_mutex_;
  std::function<void(std::uint64_t)> told_growth_;  // under grow_mutex_
  Persister grow_persister_;                        // under grow_mutex_
  std::atomic<int> writers_waiting_{0};             // for grow_mutex_
  std::atomic<std::uint64_t> hole_bytes_;           // as in the header; written under grow_mutex_
  bool can_punch_ = true;                           // under grow_mutex_

  mutable Mutex map_mutex_;
  std::vector<Arena> arenas_;  // of fixed length; limits and ends are written under both mutexes
  std::uint64_t behind_arenas_bytes_ = 0;  // too few for a segment; nothing can have them
  bool is_at_largest_ = false;             // no arena has space to grow into
  FreeMap free_;                           // empty until claims are finished
  FreeMap holes_;  // free as well, but must be provided: likely holes, all that are ones included
  Persister touch_persister_;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t refusals_ = 0;
  Reserve reserve_;
  bool is_reserve_lent_ = false;
  std::uint64_t pledged_bytes_ = 0;  // of the reserve, beyond reserve_
  bool has_finished_claims_;         // set under claim_lock_, too
  std::uint64_t grow_ahead_bytes_ = 0;
  bool has_grower_ = false;  // constant once other threads have the pool
  std::condition_variable_any space_wanted_;

  // Opening: many threads claim tens of thousands of extents. Limits do not change meanwhile.
  mutable SpinLock claim_lock_;
  ClaimMap claims_;  // under claim_lock_; empty once claims are finished

  std::jthread grower_;  // last: it uses all of the above
};

}  // namespace flugs::pmem
