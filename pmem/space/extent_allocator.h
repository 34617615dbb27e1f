#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "flugs/status.h"
#include "pmem/medium/persist.h"

namespace flugs::pmem {

/// A contiguous piece of the pool. `allocate` gives multiples of the extent unit; `release` and
/// `claim` round up, so that an owner need not know the unit.
struct Extent {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

/// What an extent is for. When the pool is nearly full, the rest of it, the reserve, is kept for
/// work that gives space back: else no transaction could delete anything any more.
enum class Purpose : std::uint8_t {
  kNewData,
  kMerge,    ///< of many chunks at a time: may use the reserve, but for what deletions need
  kReclaim,  ///< deleting, dropping, merging a single chunk: may use the reserve
};

/// What an allocation does to space that was used before.
enum class Zeros : std::uint8_t {
  kFlushed,
  kUnshared,  ///< Persister::zero_unshared
};

/// Space that extents for new data leave free. A free piece counts with the whole steps in it:
/// deletions take extents of up to a step, and a smaller piece may hold none of them.
struct Reserve {
  static constexpr std::uint64_t kStepBytes = 16384;
  static constexpr std::uint64_t countable(std::uint64_t piece_bytes) noexcept {
    return piece_bytes / kStepBytes * kStepBytes;
  }

  std::uint64_t bytes = 0;    ///< in all
  std::uint64_t merging = 0;  ///< of these, for merges, too; the rest is for deletions alone
  std::uint64_t piece = 0;    ///< of `merging`; the largest free piece has at least this many bytes
};

struct SpaceReport {
  std::uint64_t reserved_bytes = 0;   ///< largest size that the pool can grow to
  std::uint64_t allocated_bytes = 0;  ///< taken from the medium, and not given back since
  std::uint64_t used_bytes = 0;       ///< in extents with an owner
  std::uint64_t overhead_bytes = 0;   ///< needed by the pool itself: used + free + this = allocated
  std::uint64_t hole_bytes = 0;       ///< free as well, but must be taken from the medium again
  std::uint64_t reserve_bytes = 0;    ///< new data must leave them free
  std::uint64_t reserve_piece = 0;    ///< of these, side by side
  std::uint64_t reservable_bytes = 0;  ///< free, or not taken from the medium, in whole steps
  std::uint64_t largest_piece = 0;     ///< free, or not taken from the medium yet, side by side
  std::uint64_t refusals = 0;          ///< of new data, with kOutOfSpace, so far

  std::uint64_t free_bytes() const noexcept {
    return allocated_bytes - overhead_bytes - used_bytes;
  }
  /// Free, or not taken from the medium yet, and not in the reserve. An upper bound: free pieces
  /// that the reserve does not count are in it.
  std::uint64_t left_bytes() const noexcept {
    const std::uint64_t kept = overhead_bytes + used_bytes + reserve_bytes;
    return reserved_bytes > kept ? reserved_bytes - kept : 0;
  }
  /// The bytes that are left for rows if only the whole steps of the reserve count.
  std::uint64_t left_in_steps() const noexcept {
    return reservable_bytes > reserve_bytes ? reservable_bytes - reserve_bytes : 0;
  }
};

/// How much free space `give_back` leaves in the pool.
enum class Slack : std::uint8_t {
  kSome,  ///< what is kept ready for writers, and a 16th of the used space at least
  kNone,
};

/// Whether a call failed because the pool, or its medium, had not as many bytes as it wanted, and
/// not, for example, because all numbers are taken.
bool is_lack_of_bytes(const Status& status) noexcept;

/// Cuts the pool's segments into extents. Its state is in DRAM only: space that the root reaches is
/// allocated, everything else is free (house-style P3). So an allocation costs no fence and a crash
/// leaks nothing. Thread-safety: every function, any thread, unless it says otherwise.
///
/// Source: SOFORT (DaMoN 2014), section 3.2 (PMAllocator), with reachability in place of metadata.
class ExtentAllocator {
 public:
  virtual ~ExtentAllocator() = default;

  /// A new extent of at least `bytes` bytes that reads zero. Zeros::kFlushed: they are durable at
  /// the latest with the next fence of `persister`, through which those that had to be written were
  /// flushed. Zeros::kUnshared: the caller flushes all that it needs, with flush_unshared. The
  /// caller owns the extent in DRAM until it publishes a persistent pointer to it. Fails with
  /// kOutOfSpace, whose message gives wanted, free and largest size; then nothing changes.
  virtual Result<Extent> allocate(std::uint64_t bytes, Persister& persister,
                                  Purpose purpose = Purpose::kNewData,
                                  Zeros zeros = Zeros::kFlushed) = 0;
  /// The same, as far to the front as there is space, for Purpose::kReclaim and Zeros::kUnshared.
  /// Also fails with kOutOfSpace if the extent would not lie before `end`.
  virtual Result<Extent> allocate_below(std::uint64_t bytes, std::uint64_t end,
                                        Persister& persister) = 0;
  /// Keeps at least this reserve from now on; a pool that is fuller gets it when space is released.
  virtual void keep_reserve(Reserve reserve) = 0;
  /// New data may take what merges have beyond Reserve::piece, until twice the reserve is free.
  virtual void lend_reserve() noexcept = 0;
  /// `pledge` adds bytes to the reserve, for deletions: their owner will allocate them with
  /// Purpose::kReclaim. `end_pledge` takes them out of the reserve again.
  virtual void pledge(std::uint64_t bytes) noexcept = 0;
  virtual void end_pledge(std::uint64_t bytes) noexcept = 0;

  /// Gives an extent back. The persistent pointer to it must be durably gone.
  virtual void release(Extent extent) = 0;

  /// Gives free space back to the file system, the largest pieces first, where the medium can do
  /// so. Writers go on meanwhile.
  virtual void give_back(Slack slack) = 0;

  /// While opening: `owner` reaches this extent. Fails with kCorrupt when it is misaligned, out of
  /// bounds, not in one segment, or overlaps another claimed extent; the message names `owner`.
  virtual Status claim(Extent extent, std::string_view owner) = 0;
  /// Ends claiming: all unclaimed space is free from here on. Until then, allocate() fails with
  /// kBusy on an opened pool (a created pool starts finished).
  virtual void finish_claims() = 0;

  /// Calls `told` with the bytes that the pool has, each time that it has grown, under a lock of
  /// the allocator; an empty function ends this.
  virtual void tell_growth(std::function<void(std::uint64_t bytes)> told) = 0;

  virtual SpaceReport space() const = 0;
  virtual std::uint32_t unit_bytes() const noexcept = 0;
  /// Free extents as they are now, for audits; without holes.
  virtual std::uint64_t free_bytes() const = 0;
};

}  // namespace flugs::pmem
