#include "pmem/object_pool.h"

#include <fmt/format.h>
#include <libpmemobj/action_base.h>
#include <libpmemobj/atomic_base.h>
#include <libpmemobj/ctl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "pmem/object_format.h"

namespace flugs::pmem {

namespace {

constexpr std::uint64_t kArenaType = 1;  // libpmemobj's type number of our arenas
/// Up to the metadata of the first zone, that, and the chunk of the root object with some to spare.
constexpr std::uint64_t kHeadBytes = kZonesOffset + kZoneMetadataBytes + 2 * kChunkBytes;

/// Step in which space is populated: the kernel holds its lock on the address space for each.
constexpr std::uint64_t kPopulateStepBytes = std::uint64_t{2} << 20;

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the C library of Debian 12 does not name

std::uint64_t round_up(std::uint64_t value, std::uint64_t step) noexcept {
  return (value + step - 1) / step * step;
}

Status objects_failed(const std::string& path, const char* what) {
  const int error = errno;
  StatusCode code = StatusCode::kIoError;
  if (error == EAGAIN || error == EWOULDBLOCK) code = StatusCode::kBusy;
  if (error == EACCES || error == EPERM || error == EROFS) code = StatusCode::kReadOnly;
  if (error == ENOSPC || error == EFBIG) code = StatusCode::kOutOfSpace;
  if (error == EINVAL) code = StatusCode::kCorrupt;
  return Status(code,
                fmt::format("{}: libpmemobj cannot {} it: {}", path, what, pmemobj_errormsg()));
}

/// Whole chunks in each zone of libpmemobj's heap in a pool of that size: first the whole zones in
/// the middle, then the first one, in which the root object lies, then the last one.
std::vector<std::uint64_t> zone_chunks(std::uint64_t max_bytes) {
  std::vector<std::uint64_t> chunks;
  for (std::uint64_t zone = kZonesOffset; zone + kZoneMetadataBytes + kChunkBytes <= max_bytes;
       zone += kZoneBytes) {
    chunks.push_back(std::min((max_bytes - zone - kZoneMetadataBytes) / kChunkBytes, kZoneChunks));
  }
  if (chunks.size() > 2) std::rotate(chunks.begin(), chunks.begin() + 1, chunks.end() - 1);
  return chunks;
}

}  // namespace

ObjectPool::~ObjectPool() {
  detach();
  if (objects_ != nullptr) pmemobj_close(objects_);
}

Result<std::unique_ptr<Pool>> ObjectPool::create(const PoolOptions& options) {
  Status status = check_options(options);
  if (!status.ok()) return status;
  if (options.max_bytes < kFilePoolBytesMin || options.max_bytes > kPoolBytesMax) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{}: max_bytes is {}, must be at least {} and at most {}",
                              options.path, options.max_bytes, kFilePoolBytesMin, kPoolBytesMax));
  }
  Result<PoolFile> file = PoolFile::create(options.path);
  if (!file.ok()) return file.status();
  std::unique_ptr<ObjectPool> pool(new ObjectPool(*std::move(file)));
  status = pool->make_file(options);
  if (!status.ok()) {
    pool->file_.remove();
    return status;
  }
  pool->segments().grow_ahead(options.grow_ahead_bytes);
  return std::unique_ptr<Pool>(std::move(pool));
}

Result<std::unique_ptr<Pool>> ObjectPool::open(const PoolOptions& options) {
  Result<PoolFile> file = PoolFile::open(options.path);
  if (!file.ok()) return file.status();
  std::unique_ptr<ObjectPool> pool(new ObjectPool(*std::move(file)));
  Status status = pool->take_file(options);
  if (!status.ok()) return status;
  pool->segments().grow_ahead(options.grow_ahead_bytes);
  return std::unique_ptr<Pool>(std::move(pool));
}

Status ObjectPool::make_file(const PoolOptions& options) {
  const Result<MediumKind> kind = file_.detect_medium();
  if (!kind.ok()) return kind.status();
  kind_ = *kind;
  const std::uint64_t max_bytes = options.max_bytes / kPageBytes * kPageBytes;
  Status status = file_.resize(max_bytes);
  if (status.ok()) status = provide_metadata(max_bytes);
  if (status.ok()) status = write_once(0, std::min(kHeadBytes, max_bytes));
  if (status.ok()) status = file_.sync();
  if (status.ok()) status = create_mapping();
  if (!status.ok()) return status;
  const std::uint64_t bytes = root_bytes(zone_chunks(max_bytes).size()) + kLineBytes;
  if (OID_IS_NULL(pmemobj_root(objects_, bytes))) return objects_failed(path(), "make a root in");
  Result<std::vector<ArenaRecord>> arenas = make_arenas(options, max_bytes);
  if (!arenas.ok()) return arenas.status();
  status = attach_root(options, max_bytes, root_bytes(arenas->size()));
  if (status.ok()) status = make(options, *arenas);
  return status.ok() ? file_.sync_directory() : status;
}

/// The file is sparse; what libpmemobj itself writes to is taken from the medium before, as a full
/// one would otherwise kill with SIGBUS: the head with descriptor, lanes and root, then of each
/// zone of the heap the metadata and the page where the header of its first object lies.
Status ObjectPool::provide_metadata(std::uint64_t max_bytes) {
  Status status = file_.allocate(0, std::min(kHeadBytes, max_bytes));
  for (std::uint64_t zone = kZonesOffset; status.ok() && zone < max_bytes; zone += kZoneBytes) {
    const std::uint64_t end = std::min(zone + kZoneMetadataBytes + kPageBytes, max_bytes);
    status = file_.allocate(zone, end - zone);
  }
  return status;
}

/// On DAX with MAP_SYNC the first store to a block that is taken but was never written waits in its
/// page fault for a commit of the file system's journal. So fresh blocks are written once, many
/// with one commit, before anybody stores to them.
Status ObjectPool::write_once(std::uint64_t offset, std::uint64_t bytes) {
  return kind_ == MediumKind::kDax ? file_.write_zeros(offset, bytes) : Status();
}

/// Has libpmemobj make the empty file a pool of its own. Two of its settings, which are of the
/// process, must be changed for that time: that it allocates the whole file, and that newer
/// versions refuse media without a counter of unsafe shutdowns.
Status ObjectPool::create_mapping() {
  static std::mutex settings_mutex;  // held alone
  const std::scoped_lock lock(settings_mutex);
  constexpr std::array<const char*, 2> kSettings = {"fallocate.at_create", "sds.at_create"};
  std::array<int, kSettings.size()> before{};
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    int off = 0;
    if (pmemobj_ctl_get(nullptr, kSettings[i], &before[i]) != 0 ||
        pmemobj_ctl_set(nullptr, kSettings[i], &off) != 0) {
      return objects_failed(path(), "be configured for");
    }
  }
  objects_ = pmemobj_create(path().c_str(), kObjectLayoutName, 0, S_IRUSR | S_IWUSR);
  Status status = objects_ == nullptr ? objects_failed(path(), "create") : Status();
  for (std::size_t i = 0; i < kSettings.size(); ++i) {
    pmemobj_ctl_set(nullptr, kSettings[i], &before[i]);
  }
  return status;
}

Status ObjectPool::open_mapping() {
  objects_ = pmemobj_open(path().c_str(), kObjectLayoutName);
  // libpmemobj tells pools apart by an id in the file, which a copy of the file has as well.
  if (objects_ == nullptr && errno == EEXIST)
    return Status(StatusCode::kBusy,
                  fmt::format("{}: is a copy of a pool that this process has open", path()));
  if (objects_ == nullptr) return objects_failed(path(), "open");
  return {};
}

/// One object for each zone, as large as the zone; that of the first gives way to the root. In the
/// order of zone_chunks() each object gets a zone of its own and begins where it begins: libpmemobj
/// writes a header in front of an object, and the medium must have been provided there.
Result<std::vector<ArenaRecord>> ObjectPool::make_arenas(const PoolOptions& options,
                                                         std::uint64_t max_bytes) {
  constexpr std::uint64_t kRootChunksMax = 4;
  const std::uint64_t unit = options.extent_unit_bytes;
  const std::uint64_t alignment = std::max(unit, kPageBytes);
  const std::vector<std::uint64_t> zones = zone_chunks(max_bytes);
  std::vector<ArenaRecord> arenas;
  for (std::size_t i = 0; i < zones.size(); ++i) {
    const bool is_first_zone = zones.size() == 1 || i + 2 == zones.size();
    PMEMoid object = OID_NULL;
    for (std::uint64_t less = is_first_zone ? 1 : 0;
         OID_IS_NULL(object) && less <= kRootChunksMax && less < zones[i]; ++less) {
      const std::uint64_t bytes = (zones[i] - less) * kChunkBytes - kLineBytes;
      if (pmemobj_alloc(objects_, &object, bytes, kArenaType, nullptr, nullptr) != 0) {
        object = OID_NULL;
      }
    }
    if (OID_IS_NULL(object)) {
      if (is_first_zone) return objects_failed(path(), "make an arena in");
      continue;  // a last zone of next to nothing
    }
    const std::uint64_t end = object.off + pmemobj_alloc_usable_size(object);
    const std::uint64_t begin = round_up(object.off, alignment);
    arenas.push_back({.offset = begin,
                      .bytes = (end - begin) / unit * unit,
                      .allocated_limit = begin,
                      .touched_limit = begin});
  }
  std::sort(arenas.begin(), arenas.end(),
            [](const ArenaRecord& a, const ArenaRecord& b) { return a.offset < b.offset; });
  return arenas;
}

Status ObjectPool::attach_root(const PoolOptions& options, std::uint64_t bytes,
                               std::uint64_t capacity) {
  const std::uint64_t object_bytes = pmemobj_root_size(objects_);
  if (object_bytes < capacity + kLineBytes) {
    return Status(StatusCode::kCorrupt, fmt::format("{}: root object has {} bytes, expected {}",
                                                    path(), object_bytes, capacity + kLineBytes));
  }
  const PMEMoid object = pmemobj_root(objects_, object_bytes);  // as it is: never makes it larger
  if (OID_IS_NULL(object)) return objects_failed(path(), "find the root in");
  auto* const base = reinterpret_cast<std::byte*>(objects_);
  ::madvise(base, bytes, MADV_DONTFORK);  // a forked child would write past the lock
  auto* const root = reinterpret_cast<PoolRoot*>(base + round_up(object.off, kLineBytes));
  attach(kind_, {base, bytes}, options, root);
  return {};
}

Status ObjectPool::take_file(const PoolOptions& options) {
  const Result<MediumKind> kind = file_.detect_medium();
  if (!kind.ok()) return kind.status();
  kind_ = *kind;
  const Result<std::uint64_t> bytes = file_.size();
  if (!bytes.ok()) return bytes.status();
  Status status = check_before_opening(*bytes);
  if (status.ok()) status = open_mapping();
  if (status.ok()) status = attach_root(options, *bytes, sizeof(PoolRoot));
  if (!status.ok()) return status;
  return take(pmemobj_root_size(objects_) - kLineBytes);
}

/// Everything that can be judged without libpmemobj, which trusts what it finds: what the file is,
/// that its metadata is as creation left it, that our header is whole and of this version, and that
/// the medium still has all of the space.
Status ObjectPool::check_before_opening(std::uint64_t bytes) {
  const Result<FileView> view = file_.view();
  if (!view.ok()) return view.status();
  const std::span<const std::byte> file = view->bytes();
  Status status = check_object_head(file, path());
  if (!status.ok()) return status;
  std::uint64_t root = 0;
  std::memcpy(&root, file.data() + kRootOffsetOffset, sizeof root);
  status = check_root_in_file(round_up(root, kLineBytes), bytes);
  if (status.ok()) status = check_object_descriptor(file, path());
  if (status.ok()) status = check_object_lanes(file, path());
  if (status.ok()) status = check_object_heap(file, path());
  return status;
}

Status ObjectPool::check_root_in_file(std::uint64_t offset, std::uint64_t bytes) {
  std::array<PoolHeader, 2> headers;
  Status status = file_.read(offset, std::as_writable_bytes(std::span(headers)));
  if (!status.ok()) return status;
  const Result<PoolHeader> header = choose_header(headers, bytes, path());
  if (!header.ok()) return header.status();
  std::vector<ArenaRecord> arenas(header->arena_count);
  status = file_.read(offset + sizeof(PoolRoot), std::as_writable_bytes(std::span(arenas)));
  if (status.ok()) {
    status = check_arenas(*header, arenas, offset + root_bytes(arenas.size()), path());
  }
  if (!status.ok()) return status;
  // What there must be at least: all before the first arena, the metadata of the other zones, and
  // what the arenas have been provided with.
  std::uint64_t needed = arenas[0].offset + (arenas.size() - 1) * kZoneMetadataBytes;
  for (const ArenaRecord& arena : arenas) needed += arena.allocated_limit - arena.offset;
  const Result<std::uint64_t> occupied = file_.occupied_bytes();
  if (!occupied.ok()) return occupied.status();
  if (*occupied >= needed) return {};
  // A copy without its zeros (cp --sparse): take the space now rather than die by SIGBUS later.
  status = provide_metadata(bytes);
  for (const ArenaRecord& arena : arenas) {
    if (!status.ok()) return status;
    if (arena.allocated_limit == arena.offset) continue;
    status = file_.allocate(arena.offset, arena.allocated_limit - arena.offset);
  }
  return status;
}

/// Has the kernel back the whole 2 MB blocks of the range by a huge page each: a row somewhere in a
/// large table then costs hardly a TLB miss, and a restart one page fault for 512. tmpfs does so
/// when it is asked outright, whatever its mount options say (MADV_COLLAPSE, Linux 6.1), if one
/// page of the block is there. A wish: what the kernel refuses gets small pages.
void ObjectPool::gather_huge_pages(std::uint64_t offset, std::uint64_t bytes) noexcept {
  auto* const base = reinterpret_cast<std::byte*>(objects_);
  const std::uint64_t begin = round_up(offset, kHugePageBytes);
  const std::uint64_t end = (offset + bytes) / kHugePageBytes * kHugePageBytes;
  if (begin >= end || reinterpret_cast<std::uintptr_t>(base) % kHugePageBytes != 0) return;
  for (std::uint64_t block = begin; block < end; block += kHugePageBytes) {
    if (!file_.allocate(block, kPageBytes).ok()) return;
  }
  if (::madvise(base + begin, end - begin, kCollapse) != 0 && errno == EINVAL) {
    has_huge_pages_ = false;
  }
}

Status ObjectPool::provide(std::uint64_t offset, std::uint64_t bytes) {
  if (kind_ == MediumKind::kEmulated && has_huge_pages_) gather_huge_pages(offset, bytes);
  Status status = file_.allocate(offset, bytes);
  if (status.ok()) status = write_once(offset, bytes);
  if (status.ok() && kind_ != MediumKind::kEmulated) status = file_.sync();
  return status;
}

void ObjectPool::populate(std::uint64_t offset, std::uint64_t bytes) noexcept {
  // On a file a page made writable is a page to be written, so there we stop at reading it in.
  const int advice = kind_ == MediumKind::kFile ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  auto* const base = reinterpret_cast<std::byte*>(objects_);
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset / kPageBytes * kPageBytes; at < end; at += kPopulateStepBytes) {
    const std::uint64_t step = round_up(std::min(kPopulateStepBytes, end - at), kPageBytes);
    if (::madvise(base + at, step, advice) == 0) continue;
    // Kernels before 5.14: or nothing into a byte of each page, atomically, because others may be
    // writing there already; in assembler, because it races with them on purpose.
    for (std::uint64_t page = at; page < at + step; page += kPageBytes) {
      asm volatile("lock orb $0, (%0)" ::"r"(base + page) : "memory");
    }
  }
}

}  // namespace flugs::pmem
