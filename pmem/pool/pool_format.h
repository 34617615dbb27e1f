#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "flugs/status.h"
#include "pmem/medium/nvdimms.h"
#include "pmem/medium/persist.h"
#include "pmem/pool/pool.h"

namespace flugs::pmem {

// The data that flugs itself keeps at the root of a pool: identity, application root, arenas. In a
// buffer it is at offset 0, in a file in the root object of libpmemobj. docs/format.md draws it.

inline constexpr std::array<char, 8> kPoolMagic = {'f', 'l', 'u', 'g', 's', 'P', 'L', '\n'};
inline constexpr std::uint32_t kFormatVersion = 13;
/// Feature bits that this version knows. An unknown compatible bit is ignored; with an unknown
/// incompatible bit the pool must not be opened.
inline constexpr std::uint64_t kGrownFeature = 1;    ///< PoolHeader::created_bytes is in use
inline constexpr std::uint64_t kHolesFeature = 2;    ///< PoolHeader::hole_bytes is not 0
inline constexpr std::uint64_t kJournalFeature = 4;  ///< PoolHeader::journal_id is not 0
inline constexpr std::uint64_t kInUseFeature = 8;    ///< PoolHeader::used_devices is not 0
inline constexpr std::uint64_t kKnownIncompatFeatures =
    kGrownFeature | kHolesFeature | kJournalFeature | kInUseFeature;
/// Arenas of the largest pool, 16 TB: libpmemobj's largest object is a little below 16 GB.
inline constexpr std::uint32_t kArenaCountMax = 1026;
inline constexpr std::uint64_t kPoolBytesMax = std::uint64_t{16} << 40;

/// An arena is a contiguous part of the pool from which segments are taken, front to back: the
/// whole of a buffer, or a large object of libpmemobj that stays allocated. Offsets and sizes are
/// those in the pool, multiples of the extent unit. Limits only grow, each by one 8-byte store; see
/// the protocols at SegmentAllocator. The last arena of a grown pool ends with the pool, whatever
/// its record says.
struct ArenaRecord {
  std::uint64_t offset;           ///< immutable, under PoolHeader::arenas_checksum
  std::uint64_t bytes;            ///< immutable, under PoolHeader::arenas_checksum
  std::uint64_t allocated_limit;  ///< the medium has provided the space below
  std::uint64_t touched_limit;    ///< the space from here to allocated_limit reads zero
};
static_assert(sizeof(ArenaRecord) == 32);
static_assert(offsetof(ArenaRecord, allocated_limit) == 16);

/// Identity of the pool. There are two copies, so that one may be lost or torn in an update.
/// Written at creation; valid from then on. Growing and hole-count write one copy after the other.
struct PoolHeader {
  std::array<char, 8> magic;
  std::uint32_t format_version;
  std::uint32_t header_bytes;  ///< sizeof(PoolHeader)
  std::uint64_t compat_features;
  std::uint64_t incompat_features;
  std::uint64_t generation;  ///< the greater of two valid copies counts
  std::uint64_t uuid;        ///< random, not 0
  std::uint64_t max_bytes;   ///< the file or buffer has as many bytes, or more
  std::uint64_t segment_bytes;
  std::uint32_t extent_unit_bytes;
  std::uint32_t arena_count;
  std::uint64_t arenas_checksum;           ///< XXH3, 64 bits, of offset and bytes of each arena
  std::uint64_t created_bytes;             ///< of a grown pool: max_bytes at its creation; else 0
  std::uint64_t hole_bytes;                ///< at most so much of the arenas' space is holes
  std::uint64_t journal_id;                ///< of the journal that the file needs; 0: none
  std::uint64_t used_devices;              ///< ShutdownCount::devices while it is in use; else 0
  std::uint64_t shutdown_count;            ///< ShutdownCount::count at its opening; else 0
  std::array<std::uint64_t, 16> reserved;  ///< 0
  std::uint64_t checksum;                  ///< XXH3, 64 bits, of all fields before
};
static_assert(sizeof(PoolHeader) == 256);
static_assert(sizeof(PoolHeader) % kLineBytes == 0);  // a torn copy leaves the other whole
static_assert(offsetof(PoolHeader, format_version) == 8);
static_assert(offsetof(PoolHeader, incompat_features) == 24);
static_assert(offsetof(PoolHeader, max_bytes) == 48);
static_assert(offsetof(PoolHeader, arenas_checksum) == 72);
static_assert(offsetof(PoolHeader, created_bytes) == 80);
static_assert(offsetof(PoolHeader, used_devices) == 104);
static_assert(offsetof(PoolHeader, checksum) == 248);

struct PoolRoot {
  std::array<PoolHeader, 2> headers;
  std::array<std::byte, kApplicationRootBytes> application_root;
  // ArenaRecord[header.arena_count] follows.

  ArenaRecord* arenas() noexcept { return reinterpret_cast<ArenaRecord*>(this + 1); }
};
static_assert(sizeof(PoolRoot) == 2560);
static_assert(offsetof(PoolRoot, application_root) % kLineBytes == 0);

/// Bytes of a root with `arena_count` arenas.
constexpr std::uint64_t root_bytes(std::uint64_t arena_count) noexcept {
  return sizeof(PoolRoot) + arena_count * sizeof(ArenaRecord);
}

/// Last step of protocol pool-create: makes `root`, whose arenas are written, the root of a pool.
void publish_new_root(PoolRoot& root, const PoolOptions& options, std::uint64_t max_bytes,
                      std::uint32_t arena_count, Persister& persister) noexcept;
std::uint64_t checksum_of(const PoolHeader& header) noexcept;

/// Bytes that the pool had at its creation.
inline std::uint64_t created_bytes_of(const PoolHeader& header) noexcept {
  return header.created_bytes != 0 ? header.created_bytes : header.max_bytes;
}
/// Where the last arena ends, whose record is `last`.
inline std::uint64_t last_arena_end(const PoolHeader& header, const ArenaRecord& last) noexcept {
  if (header.created_bytes == 0) return last.offset + last.bytes;
  return header.max_bytes / header.extent_unit_bytes * header.extent_unit_bytes;
}

/// What an allocator must know of a pool besides its arenas.
struct SpaceShape {
  std::uint64_t end = 0;  ///< of the last arena
  std::uint64_t segment_bytes = 0;
  std::uint32_t unit_bytes = 0;
  std::uint64_t hole_bytes = 0;
};
inline SpaceShape shape_of(const PoolHeader& header, const ArenaRecord& last) noexcept {
  return {.end = last_arena_end(header, last),
          .segment_bytes = header.segment_bytes,
          .unit_bytes = header.extent_unit_bytes,
          .hole_bytes = header.hole_bytes};
}

/// Protocol hole-count: the header says `bytes` when this returns, durably.
void persist_hole_bytes(PoolRoot& root, std::uint64_t bytes, Persister& persister) noexcept;
/// Protocol journal-id: the header names this journal when this returns.
void set_journal_id(PoolRoot& root, std::uint64_t id, Persister& persister) noexcept;
/// Protocol in-use: the header says so when this returns, durably; no devices: not in use.
void set_in_use(PoolRoot& root, ShutdownCount by, Persister& persister) noexcept;
/// Whether each line that was promised durable has reached the devices, which are `found` now. No
/// if the pool was in use when they lost their power without a proper shutdown, or if that cannot
/// be found out: kCorrupt, with both counts and with what to do.
Status check_shutdowns(const PoolHeader& header, const Nvdimms& found, const std::string& where);
/// The journal that a file with these copies of the header needs; id 0: none, or no copy is whole.
struct NeededJournal {
  std::uint64_t id = 0;
  std::uint64_t pool_uuid = 0;
};
NeededJournal needed_journal(const std::array<PoolHeader, 2>& copies) noexcept;
std::uint64_t random_id() noexcept;  ///< not 0
/// Protocol pool-grow from step 2 on: the pool has `max_bytes` when this returns, durably.
void grow_headers(PoolRoot& root, std::uint64_t max_bytes, Persister& persister) noexcept;

/// Decides which of the two copies counts. Fails with kCorrupt when neither is whole (`where` names
/// the pool), kIncompatible when the copy that counts is of a newer version or has unknown
/// features, kCorrupt when it contradicts itself or the pool is larger than `pool_bytes`, the size
/// of the file or buffer.
Result<PoolHeader> choose_header(const std::array<PoolHeader, 2>& copies, std::uint64_t pool_bytes,
                                 const std::string& where);
/// Checks that the arenas are those of the header and lie, with their limits, within the pool; the
/// first may begin at `root_end`. Otherwise kCorrupt with expected and found.
Status check_arenas(const PoolHeader& header, std::span<const ArenaRecord> arenas,
                    std::uint64_t root_end, const std::string& where);

/// Protocol header-repair. Rewrites a copy that differs from `good`.
void repair_headers(PoolRoot& root, const PoolHeader& good, Persister& persister) noexcept;

/// Sizes that both kinds of pool require of their options.
Status check_options(const PoolOptions& options);
/// Whether a pool of `present` bytes can get `wanted` bytes; else kInvalidArgument with both.
Status check_growth(std::uint64_t present, std::uint64_t wanted, const std::string& where);

}  // namespace flugs::pmem
