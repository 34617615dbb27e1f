#include "pmem/pool/pool_format.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <xxhash.h>

#include <bit>
#include <chrono>
#include <cstring>

#include "base/check.h"

namespace flugs::pmem {

namespace {

constexpr std::uint32_t kExtentUnitBytesMin = 64;
constexpr std::uint32_t kExtentUnitBytesMax = 65536;

Status corrupt(const std::string& where, const std::string& what) {
  return Status(StatusCode::kCorrupt, fmt::format("{}: {}", where, what));
}

bool is_extent_unit(std::uint64_t unit) noexcept {
  return std::has_single_bit(unit) && unit >= kExtentUnitBytesMin && unit <= kExtentUnitBytesMax;
}

bool is_whole(const PoolHeader& header) noexcept {
  return header.magic == kPoolMagic && header.checksum == checksum_of(header);
}

const PoolHeader* newest_whole(const std::array<PoolHeader, 2>& copies) noexcept {
  const PoolHeader* best = nullptr;
  for (const PoolHeader& copy : copies) {
    if (!is_whole(copy)) continue;
    if (best == nullptr || copy.generation > best->generation) best = &copy;
  }
  return best;
}

Status check_sizes(const PoolHeader& header, std::uint64_t pool_bytes, const std::string& where) {
  const std::uint64_t unit = header.extent_unit_bytes;
  if (!is_extent_unit(unit)) {
    return corrupt(where, fmt::format("header: extent unit is {}, expected a power of two from {} "
                                      "to {}",
                                      unit, kExtentUnitBytesMin, kExtentUnitBytesMax));
  }
  if (header.segment_bytes == 0 || header.segment_bytes % unit != 0) {
    return corrupt(where, fmt::format("header: segments of {} bytes, expected a multiple of {}",
                                      header.segment_bytes, unit));
  }
  if (header.max_bytes > pool_bytes) {
    return corrupt(
        where,
        fmt::format(
            "the size is {} bytes, expected {}: the file was truncated, or copied only in part",
            pool_bytes, header.max_bytes));
  }
  const bool has_grown = (header.incompat_features & kGrownFeature) != 0;
  if (has_grown != (header.created_bytes != 0) || header.created_bytes > header.max_bytes) {
    return corrupt(
        where, fmt::format("header: {} bytes at creation, expected {}up to {}",
                           header.created_bytes, has_grown ? "1 " : "0, not ", header.max_bytes));
  }
  if (((header.incompat_features & kHolesFeature) != 0) != (header.hole_bytes != 0))
    return corrupt(where, fmt::format("header: {} bytes of holes, but features {:#x}",
                                      header.hole_bytes, header.incompat_features));
  if (((header.incompat_features & kJournalFeature) != 0) != (header.journal_id != 0))
    return corrupt(where, fmt::format("header: journal {:016x}, but features {:#x}",
                                      header.journal_id, header.incompat_features));
  if (((header.incompat_features & kInUseFeature) != 0) != (header.used_devices != 0) ||
      (header.used_devices == 0 && header.shutdown_count != 0))
    return corrupt(
        where, fmt::format("header: in use on devices {:016x}, shutdowns {}, but "
                           "features {:#x}",
                           header.used_devices, header.shutdown_count, header.incompat_features));
  if (header.arena_count == 0 || header.arena_count > kArenaCountMax) {
    return corrupt(where, fmt::format("header: {} arenas, expected 1 to {}", header.arena_count,
                                      kArenaCountMax));
  }
  return {};
}

std::uint64_t checksum_of(std::span<const ArenaRecord> arenas) noexcept {
  std::uint64_t sum = arenas.size();
  for (const ArenaRecord& arena : arenas) {
    sum = XXH3_64bits_withSeed(&arena, offsetof(ArenaRecord, allocated_limit), sum);
  }
  return sum;
}

/// Puts `next` into one copy after the other, as the next generation.
void replace_headers(PoolRoot& root, PoolHeader next, Persister& persister, Label first,
                     Label second) noexcept {
  FLUGS_CHECK(is_whole(root.headers[0]));
  FLUGS_CHECK(std::memcmp(root.headers.data(), &root.headers[1], sizeof next) == 0);  // repaired
  ++next.generation;
  next.checksum = checksum_of(next);
  // Other fields stay: other threads read them.
  const auto store = [&next](PoolHeader& copy) {
    copy.incompat_features = next.incompat_features;
    copy.generation = next.generation;
    copy.max_bytes = next.max_bytes;
    copy.created_bytes = next.created_bytes;
    copy.hole_bytes = next.hole_bytes;
    copy.journal_id = next.journal_id;
    copy.used_devices = next.used_devices;
    copy.shutdown_count = next.shutdown_count;
    copy.checksum = next.checksum;
  };
  store(root.headers[1]);
  persister.persist(&root.headers[1], sizeof next, first);
  store(root.headers[0]);
  persister.persist(root.headers.data(), sizeof next, second);
}

}  // namespace

std::uint64_t random_id() noexcept {
  std::uint64_t id = 0;
  while (id == 0) {
    if (::getrandom(&id, sizeof id, 0) == static_cast<ssize_t>(sizeof id)) continue;
    // No entropy source: the clock still distinguishes the pools of one machine.
    id = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  }
  return id;
}

std::uint64_t checksum_of(const PoolHeader& header) noexcept {
  return XXH3_64bits(&header, offsetof(PoolHeader, checksum));
}

// Protocol pool-create, a part of pool-file (object_pool.cc).
//   step  store                     made durable by    power cut just after it: recovery
//   1     arenas, application root  flush              finds no whole header: not a pool
//   2     both headers              persist with 1     finds no whole header, or a pool
// Must hold:  nothing of 1 be needed before 2 is whole. The header's checksum covers the arenas'
//             places; their limits became durable when the first segment was provided.
void publish_new_root(PoolRoot& root, const PoolOptions& options, std::uint64_t max_bytes,
                      std::uint32_t arena_count, Persister& persister) noexcept {
  FLUGS_CHECK(check_options(options).ok());
  persister.persist(&root.application_root, root_bytes(arena_count) - sizeof root.headers,
                    "pool-create/1");
  PoolHeader header{};
  header.magic = kPoolMagic;
  header.format_version = kFormatVersion;
  header.header_bytes = sizeof(PoolHeader);
  header.generation = 1;
  header.uuid = random_id();
  header.max_bytes = max_bytes;
  header.segment_bytes = options.segment_bytes;
  header.extent_unit_bytes = options.extent_unit_bytes;
  header.arena_count = arena_count;
  header.arenas_checksum = checksum_of(std::span<const ArenaRecord>(root.arenas(), arena_count));
  header.checksum = checksum_of(header);
  root.headers = {header, header};
  persister.persist(&root.headers, sizeof root.headers, "pool-create/2");
}

// Protocol pool-grow. MappedPool::grow, while the allocator does not grow.
//   step  store                        made durable by   power cut just after it: recovery
//   1     size of the file             extend(): fsync   takes the size in the header: the rest of
//                                                        the file is not used
//   2     header 1: max_bytes, the     persist           finds it whole, and the pool has grown; or
//         next generation                                torn, and header 0 counts: it has not
//   3     header 0, the same           persist           finds it whole, or torn and repairs it
// Must hold:  1 before 2, else a header could name a size that the file does not have: refused.
//             2 before 3, else both copies could be torn.
//             3 before space behind the old end is used: allocated_limit may not lie behind the end
//             of its arena, whichever copy is lost later.
// Need not:   the arena's record change: where the last arena of a grown pool ends follows from the
//             header.
void grow_headers(PoolRoot& root, std::uint64_t max_bytes, Persister& persister) noexcept {
  PoolHeader header = root.headers[0];
  FLUGS_CHECK(max_bytes >= header.max_bytes);
  header.created_bytes = created_bytes_of(header);
  header.incompat_features |= kGrownFeature;
  header.max_bytes = max_bytes;
  replace_headers(root, header, persister, "pool-grow/2", "pool-grow/3");
}

// Protocol hole-count. Before blocks are given back, with a greater number; after blocks were taken
// again, with a smaller one. Under the allocator's grow_mutex_.
//   step  store                        made durable by   power cut just after it: recovery
//   1     header 1: hole_bytes, the    persist           finds it whole, or torn, and header 0
//         next generation                                counts
//   2     header 0, the same           persist           finds it whole, or torn and repairs it
// Must hold:  1 before 2, else both copies could be torn.
void persist_hole_bytes(PoolRoot& root, std::uint64_t bytes, Persister& persister) noexcept {
  PoolHeader header = root.headers[0];
  if (header.hole_bytes == bytes) return;
  header.hole_bytes = bytes;
  header.incompat_features &= ~kHolesFeature;
  if (bytes != 0) header.incompat_features |= kHolesFeature;
  replace_headers(root, header, persister, "hole-count/1", "hole-count/2");
}

// Protocol journal-id. While the pool is opened or closed, by one thread.
//   step  store                        made durable by   power cut just after it: recovery
//   1     header 1: journal_id, the    persist           finds it whole, or torn, and header 0
//         next generation                                counts
//   2     header 0, the same           persist           finds it whole, or torn and repairs it
// Must hold:  1 before 2, else both copies could be torn.
//             The file has the id before a page of it is written that needs the journal, and all
//             pages before the id is 0 again (ObjectPool::name_journal, end_journal).
void set_journal_id(PoolRoot& root, std::uint64_t id, Persister& persister) noexcept {
  PoolHeader header = root.headers[0];
  if (header.journal_id == id) return;
  header.journal_id = id;
  header.incompat_features &= ~kJournalFeature;
  if (id != 0) header.incompat_features |= kJournalFeature;
  replace_headers(root, header, persister, "journal-id/1", "journal-id/2");
}

// Protocol in-use. While the pool is opened or closed, by one thread; only where the devices count
// their shutdowns.
//   step  store                        made durable by   power cut just after it: recovery
//   1     header 1: used_devices,      persist           finds it whole, or torn, and header 0
//         shutdown_count, the next                       counts
//         generation
//   2     header 0, the same           persist           finds it whole, or torn and repairs it
// Must hold:  1 before 2, else both copies could be torn.
//             Opening: 2 on the devices (Pool's drain, fsync) before anything but header-repair is
//             stored, else lines could be lost without a sign of it.
//             Closing: all stores on the devices (fsync) before 1, for the same reason.
void set_in_use(PoolRoot& root, ShutdownCount by, Persister& persister) noexcept {
  FLUGS_CHECK(by.devices != 0 || by.count == 0);
  PoolHeader header = root.headers[0];
  if (header.used_devices == by.devices && header.shutdown_count == by.count) return;
  header.used_devices = by.devices;
  header.shutdown_count = by.count;
  header.incompat_features &= ~kInUseFeature;
  if (by.devices != 0) header.incompat_features |= kInUseFeature;
  replace_headers(root, header, persister, "in-use/1", "in-use/2");
}

Status check_shutdowns(const PoolHeader& header, const Nvdimms& found, const std::string& where) {
  if (header.used_devices == 0) return {};
  const ShutdownCount then{header.used_devices, header.shutdown_count};
  if (found.shutdowns == then) return {};
  constexpr const char* kAdvice =
      "lines that commits were promised may be lost, unless this is a copy of a pool that was in "
      "use. Run `flugs pool check` on it; restore a backup unless you can do without the newest "
      "changes; OpenOptions::accept_lost_lines, or `flugs sql POOL --accept-lost-lines`, opens it "
      "all the same";
  if (!found.shutdowns)
    return corrupt(where, fmt::format("the pool was in use on devices {:016x} after {} shutdowns "
                                      "without power, and what their count is now is not known, "
                                      "because {}: {}",
                                      then.devices, then.count, found.why_unknown, kAdvice));
  if (found.shutdowns->devices != then.devices)
    return corrupt(where, fmt::format("the pool was in use on devices {:016x} after {} shutdowns "
                                      "without power, and lies on others now, {:016x} ({}): {}",
                                      then.devices, then.count, found.shutdowns->devices,
                                      found.names, kAdvice));
  return corrupt(where, fmt::format("the pool was in use when {} lost their power without a proper "
                                    "shutdown: count at offset {} of the header expected {}, found "
                                    "{} now: {}",
                                    found.names, offsetof(PoolHeader, shutdown_count), then.count,
                                    found.shutdowns->count, kAdvice));
}

NeededJournal needed_journal(const std::array<PoolHeader, 2>& copies) noexcept {
  const PoolHeader* const best = newest_whole(copies);
  return best == nullptr ? NeededJournal() : NeededJournal{best->journal_id, best->uuid};
}

Result<PoolHeader> choose_header(const std::array<PoolHeader, 2>& copies, std::uint64_t pool_bytes,
                                 const std::string& where) {
  const PoolHeader* const best = newest_whole(copies);
  if (best == nullptr) {
    return corrupt(where,
                   fmt::format("no intact header: checksums expected {:016x} and {:016x}, found "
                               "{:016x} and {:016x}; the pool was never completed, or is damaged",
                               checksum_of(copies[0]), checksum_of(copies[1]), copies[0].checksum,
                               copies[1].checksum));
  }
  if (best->format_version != kFormatVersion) {
    return Status(StatusCode::kIncompatible,
                  fmt::format("{}: format version {}, but this program reads version {}: use the "
                              "flugs that made it, or a newer one if its version is greater",
                              where, best->format_version, kFormatVersion));
  }
  const std::uint64_t unknown = best->incompat_features & ~kKnownIncompatFeatures;
  if (unknown != 0) {
    return Status(
        StatusCode::kIncompatible,
        fmt::format("{}: uses features that this program does not know: bits {:#x}, known "
                    "are {:#x}",
                    where, unknown, kKnownIncompatFeatures));
  }
  Status status = check_sizes(*best, pool_bytes, where);
  if (!status.ok()) return status;
  return *best;
}

Status check_arenas(const PoolHeader& header, std::span<const ArenaRecord> arenas,
                    std::uint64_t root_end, const std::string& where) {
  const std::uint64_t found = checksum_of(arenas);
  if (found != header.arenas_checksum) {
    return corrupt(where, fmt::format("arena table: checksum expected {:016x}, found {:016x}",
                                      header.arenas_checksum, found));
  }
  std::uint64_t free_from = root_end;
  std::uint64_t allocated = 0;
  for (std::size_t i = 0; i < arenas.size(); ++i) {
    const ArenaRecord& arena = arenas[i];
    // Arenas never touch, so free space of two arenas is never merged into one extent.
    const std::uint64_t begin_min = i == 0 ? free_from : free_from + 1;
    if (arena.offset < begin_min || arena.offset > header.max_bytes || arena.bytes == 0 ||
        arena.bytes > header.max_bytes - arena.offset) {
      return corrupt(where, fmt::format("arena {}: {} bytes at offset {}, expected between {} and "
                                        "{}",
                                        i, arena.bytes, arena.offset, begin_min, header.max_bytes));
    }
    const std::uint64_t end =
        i + 1 == arenas.size() ? last_arena_end(header, arena) : arena.offset + arena.bytes;
    const bool is_ordered = arena.offset <= arena.touched_limit &&
                            arena.touched_limit <= arena.allocated_limit &&
                            arena.allocated_limit <= end;
    const std::uint64_t all = arena.offset | end | arena.touched_limit | arena.allocated_limit;
    if (!is_ordered || all % header.extent_unit_bytes != 0) {
      return corrupt(where, fmt::format("arena {}: touched up to {}, allocated up to {}, expected "
                                        "{} <= touched <= allocated <= {} in multiples of {}",
                                        i, arena.touched_limit, arena.allocated_limit, arena.offset,
                                        end, header.extent_unit_bytes));
    }
    free_from = end;
    allocated += arena.allocated_limit - arena.offset;
  }
  if (header.hole_bytes > allocated)
    return corrupt(where, fmt::format("header: {} bytes of holes, expected up to {}, the space "
                                      "allocated",
                                      header.hole_bytes, allocated));
  return {};
}

// Protocol header-repair. While opening, before anything else is written.
//   step  store                made durable by   power cut just after it: recovery
//   1     none: the copy that    persist           finds it whole, or torn, and the other counts
//         counts
//   2     the copy unlike it     persist           finds it whole, or torn and writes it again
// Must hold:  1 before 2: a killed process may have left the copy that counts in the caches only,
//             and then both could be torn.
void repair_headers(PoolRoot& root, const PoolHeader& good, Persister& persister) noexcept {
  FLUGS_CHECK(is_whole(good));  // chosen before
  if (std::memcmp(root.headers.data(), &root.headers[1], sizeof good) == 0) return;
  const std::size_t counts = std::memcmp(root.headers.data(), &good, sizeof good) == 0 ? 0 : 1;
  persister.persist(&root.headers[counts], sizeof good, "header-repair/1");
  root.headers[1 - counts] = good;
  persister.persist(&root.headers[1 - counts], sizeof good, "header-repair/2");
}

Status check_growth(std::uint64_t present, std::uint64_t wanted, const std::string& where) {
  if (wanted < present)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: max_bytes is {}, but the pool has {} already and never gets "
                              "smaller: give as many or more, or 0 to leave it as it is",
                              where, wanted, present));
  if (wanted > kPoolBytesMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: max_bytes is {}, must be at most {}; the pool has {}", where,
                              wanted, kPoolBytesMax, present));
  return {};
}

Status check_options(const PoolOptions& options) {
  const std::uint64_t unit = options.extent_unit_bytes;
  if (!is_extent_unit(unit)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("extent_unit_bytes is {}, must be a power of two from {} to {}", unit,
                              kExtentUnitBytesMin, kExtentUnitBytesMax));
  }
  if (options.segment_bytes == 0 || options.segment_bytes % unit != 0) {
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("segment_bytes is {}, must be a multiple of {}", options.segment_bytes, unit));
  }
  return {};
}

}  // namespace flugs::pmem
