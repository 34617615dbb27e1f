#include "pmem/kinds/object_pool.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "pmem/kinds/object_format.h"
#include "pmem/kinds/object_maker.h"

namespace flugs::pmem {

namespace {

/// Everything before the first zone's metadata, the metadata, and the chunk of the root object with
/// some bytes to spare.
constexpr std::uint64_t kHeadBytes = kZonesOffset + kZoneMetadataBytes + 2 * kChunkBytes;
static_assert(kHeadBytes <= kFilePoolBytesMin);
static_assert(root_bytes(kArenaCountMax) + kLineBytes <= kChunkBytes);  // the root object

/// Step in which space is populated: the kernel holds its lock on the address space during each
/// step.
constexpr std::uint64_t kPopulateStepBytes = std::uint64_t{2} << 20;

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;
static_assert(kPopulateStepBytes % kPageBytes == 0 && kHugePageBytes % kPageBytes == 0);
constexpr int kCollapse = 25;  // MADV_COLLAPSE, which the C library of Debian 12 does not name

Status read_from(std::span<const std::byte> file, std::uint64_t offset, std::span<std::byte> out,
                 const std::string& where) {
  if (offset > file.size() || out.size() > file.size() - offset)
    return Status(StatusCode::kCorrupt, fmt::format("{}: ends at {}, expected at least {} bytes",
                                                    where, file.size(), offset + out.size()));
  std::memcpy(out.data(), file.data() + offset, out.size());
  return {};
}

}  // namespace

ObjectPool::~ObjectPool() {
  if (journal_ != nullptr) is_open_ ? end_journal() : journal_->remove_ring();
  end_use();  // also when opening has failed behind the mark
  detach();
  at_fork_.leave();
}

Result<std::unique_ptr<Pool>> ObjectPool::create(const PoolOptions& given) {
  PoolOptions options = given;
  if (options.max_bytes == 0) options.max_bytes = kPoolBytesDefault;
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
    pool->file_.discard();
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

// Protocol pool-file. On failure nothing is left.
//   step  store                          made durable by        power cut just after it: recovery
//   1     size, blocks, pool of          fsync, libpmemobj      no file
//         libpmemobj
//   2     our structures in it           pool-create's fences   no file
//   3     the path                       fsync of the folder    no file, or a whole pool
// Must hold:  1 and 2 before 3. Where the file system has no files without a path (see
//             PoolFile::create) 3 comes first. Then, until 2 is done, opening refuses the file.
Status ObjectPool::make_file(const PoolOptions& options) {
  const Result<MediumKind> kind = file_.detect_medium();
  if (!kind.ok()) return kind.status();
  kind_ = *kind;
  lie_on(file_.nvdimms(options.sysfs));
  const std::uint64_t max_bytes = options.max_bytes / kPageBytes * kPageBytes;
  Status status = file_.resize(max_bytes);
  if (status.ok()) status = provide_metadata(max_bytes);
  if (status.ok()) status = write_once(0, std::min(kHeadBytes, max_bytes));
  if (status.ok()) status = file_.sync();
  if (!status.ok()) return status;
  const Result<std::vector<ArenaRecord>> arenas = [&] {
    const ForkPause pause;  // libpmemobj opens, locks and maps the file, too
    return make_objects(file_.path_to_open(), options, max_bytes);
  }();
  if (!arenas.ok()) return arenas.status();
  status = map(max_bytes, max_bytes, has_journal() ? MAP_SHARED : map_flags());
  if (status.ok()) status = attach_root(options, root_bytes(arenas->size()));
  if (status.ok()) status = make(options, *arenas);
  if (status.ok() && has_journal()) status = file_.sync();  // there is none yet
  if (status.ok()) status = file_.publish();
  if (status.ok()) {
    const ForkPause pause;
    status = file_.map(map_flags(), {space_.base(), mapped_bytes_}, 0);  // now by its path
    if (status.ok()) keep_from_children(0);
  }
  if (status.ok() && has_journal()) status = begin_journal(uuid(), 0, options);
  if (status.ok() && has_journal()) status = name_journal();
  is_open_ = status.ok();
  return status;
}

/// The file is sparse. The parts that libpmemobj itself writes to are taken from the medium before,
/// because a full medium would otherwise end the process with SIGBUS: the head with descriptor,
/// lanes and root, and for each zone of the heap the metadata and the page with the header of its
/// first object.
Status ObjectPool::provide_metadata(std::uint64_t max_bytes) {
  Status status = file_.allocate(0, std::min(kHeadBytes, max_bytes));
  for (std::uint64_t zone = kZonesOffset; status.ok() && zone < max_bytes; zone += kZoneBytes) {
    const std::uint64_t end = std::min(zone + kZoneMetadataBytes + kPageBytes, max_bytes);
    status = file_.allocate(zone, end - zone);
  }
  return status;
}

/// On DAX with MAP_SYNC the first store to an allocated but unwritten block waits in its page fault
/// for a commit of the file system's journal. So fresh blocks are written once, many with one
/// commit, before any other store to them.
Status ObjectPool::write_once(std::uint64_t offset, std::uint64_t bytes) {
  return facts_of(kind_).writes_new_space ? file_.write_zeros(offset, bytes) : Status();
}

/// Maps the pool of `bytes`, with address space for `bytes_wanted` and more.
Status ObjectPool::map(std::uint64_t bytes, std::uint64_t bytes_wanted, int flags) {
  FLUGS_CHECK(space_.base() == nullptr);
  const std::uint64_t bytes_min = std::min(std::max(bytes, bytes_wanted), kPoolBytesMax);
  Result<AddressSpace> space =
      AddressSpace::reserve(std::max(bytes, bytes_min), kHugePageBytes, path());
  if (!space.ok()) return std::move(space).status();
  space_ = *std::move(space);
  const ForkPause pause;
  Status status = file_.map(flags, {space_.base(), bytes}, 0);
  if (!status.ok()) return status;
  mapped_bytes_ = bytes;
  keep_from_children(0);
  return at_fork_.enter(&ObjectPool::cover_in_child, this);
}

/// Fails with no_address_space rather than move anything. What of the file lies behind the size in
/// the header is not used, so a file that stays longer does no harm.
Status ObjectPool::extend(std::uint64_t before, std::uint64_t bytes) {
  FLUGS_CHECK(before <= mapped_bytes_ && before < bytes);
  if (bytes > space_.bytes()) return no_address_space(bytes, space_.bytes());
  Status status = file_.resize(bytes);
  if (status.ok()) status = file_.sync();
  if (status.ok()) {
    const ForkPause pause;
    status = file_.map(map_flags(), {space_.base() + before, bytes - before}, before);
    if (!status.ok()) space_.cut(before);
    if (status.ok()) mapped_bytes_ = bytes;
    if (status.ok()) keep_from_children(before);
    if (reads_single_pages_) advise_single_pages(before);
  }
  if (!status.ok()) static_cast<void>(file_.resize(before));
  return status;
}

/// Maps zeros in the place of the pool in a forked child: a reader of a row gets zeros and does not
/// crash.
void ObjectPool::cover_in_child(void* pool) noexcept {
  const auto& parent = *static_cast<const ObjectPool*>(pool);
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
  // If memory is short the range stays unmapped, as MADV_DONTFORK left it.
  [[maybe_unused]] const void* zeros =
      ::mmap(parent.space_.base(), parent.mapped_bytes_, PROT_READ, kFlags, -1, 0);
}

/// A forked child would write in spite of the lock.
void ObjectPool::keep_from_children(std::uint64_t begin) noexcept {
  FLUGS_CHECK(begin <= mapped_bytes_);
  ::madvise(space_.base() + begin, mapped_bytes_ - begin, MADV_DONTFORK);
}

Status ObjectPool::attach_root(const PoolOptions& options, std::uint64_t capacity) {
  std::uint64_t offset = 0;
  std::memcpy(&offset, space_.base() + kRootOffsetOffset, sizeof offset);
  std::memcpy(&root_bytes_, space_.base() + kRootBytesOffset, sizeof root_bytes_);
  if (root_bytes_ < capacity + kLineBytes) {
    return Status(StatusCode::kCorrupt, fmt::format("{}: root object has {} bytes, expected {}",
                                                    path(), root_bytes_, capacity + kLineBytes));
  }
  auto* const root = reinterpret_cast<PoolRoot*>(space_.base() + round_up(offset, kLineBytes));
  attach(kind_, {space_.base(), mapped_bytes_}, options, root);
  return {};
}

Status ObjectPool::take_file(const PoolOptions& options) {
  const Result<MediumKind> kind = file_.detect_medium();
  if (!kind.ok()) return kind.status();
  kind_ = *kind;
  lie_on(file_.nvdimms(options.sysfs));
  accepts_lost_lines_ = options.accepts_lost_lines;
  const Result<std::uint64_t> bytes = file_.size();
  if (!bytes.ok()) return bytes.status();
  const Result<PoolHeader> header =
      has_journal() ? map_with_journal(*bytes, options) : map_existing(*bytes, options);
  Status status = header.status();
  if (status.ok()) status = attach_root(options, sizeof(PoolRoot));
  if (status.ok() && has_journal())
    status = begin_journal(header->uuid, header->journal_id, options);
  if (!status.ok()) return status;
  status = take(root_bytes_ - kLineBytes, options);
  if (status.ok() && has_no_holes_) segments().forget_holes();
  if (status.ok()) status = has_journal() ? name_journal() : do_without_journal();
  is_open_ = status.ok();
  read_single_pages();
  return status;
}

/// Checks the kind of the file, that its head leads to our header, that the header is whole and of
/// this version, and that the medium still has all of the space. Audits check the parts that only
/// libpmemobj reads.
Result<PoolHeader> ObjectPool::check_before_opening(std::span<const std::byte> file) {
  Status status = check_object_head(file, path());
  if (!status.ok()) return status;
  std::uint64_t root = 0;
  std::memcpy(&root, file.data() + kRootOffsetOffset, sizeof root);
  root = round_up(root, kLineBytes);
  std::array<PoolHeader, 2> headers;
  status = read_from(file, root, std::as_writable_bytes(std::span(headers)), path());
  if (!status.ok()) return status;
  Result<PoolHeader> header = choose_header(headers, file.size(), path());
  if (!header.ok()) return header;
  if (!accepts_lost_lines_) status = check_shutdowns(*header, nvdimms(), path());
  if (!status.ok()) return status;
  status = check_space(file, root, *header);
  if (status.ok()) status = check_object_descriptor(file.first(created_bytes_of(*header)), path());
  if (!status.ok()) return status;
  return header;
}

/// Checks the arenas behind the root, and that the file still has its blocks.
Status ObjectPool::check_space(std::span<const std::byte> file, std::uint64_t root,
                               const PoolHeader& header) {
  std::vector<ArenaRecord> arenas(header.arena_count);
  Status status =
      read_from(file, root + sizeof(PoolRoot), std::as_writable_bytes(std::span(arenas)), path());
  if (status.ok()) status = check_arenas(header, arenas, root + root_bytes(arenas.size()), path());
  if (!status.ok()) return status;
  // The least space that must be allocated: all before the first arena, the metadata of the other
  // zones, and the provided part of the arenas.
  std::uint64_t needed = arenas[0].offset + (arenas.size() - 1) * kZoneMetadataBytes;
  for (const ArenaRecord& arena : arenas) needed += arena.allocated_limit - arena.offset;
  needed -= header.hole_bytes;
  const Result<std::uint64_t> occupied = file_.occupied_bytes();
  if (!occupied.ok()) return occupied.status();
  return *occupied >= needed ? Status() : provide_all(header, arenas);
}

/// A copy without its zeros (cp --sparse): takes the space now rather than die by SIGBUS later. The
/// holes become space again, as nothing tells them from zeros that were left out.
Status ObjectPool::provide_all(const PoolHeader& header, std::span<const ArenaRecord> arenas) {
  Status status = provide_metadata(created_bytes_of(header));
  for (const ArenaRecord& arena : arenas) {
    if (!status.ok()) return status;
    if (arena.allocated_limit == arena.offset) continue;
    status = file_.allocate(arena.offset, arena.allocated_limit - arena.offset);
  }
  has_no_holes_ = status.ok();
  return status;
}

/// Makes the kernel back the whole 2 MB blocks of the range with a huge page each. Then a row
/// somewhere in a large table hardly costs a TLB miss, and a restart has one page fault instead of
/// 512. tmpfs does so on an explicit request (MADV_COLLAPSE, Linux 6.1), whatever its mount options
/// say, if one page of the block exists. Where the kernel refuses, pages stay small.
void ObjectPool::gather_huge_pages(std::uint64_t offset, std::uint64_t bytes) noexcept {
  std::byte* const base = space_.base();
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
  FLUGS_CHECK(has_range(offset, bytes));
  if (facts_of(kind_).gathers_huge_pages && has_huge_pages_) gather_huge_pages(offset, bytes);
  Status status = file_.allocate(offset, bytes);
  if (status.ok()) status = write_once(offset, bytes);
  if (status.ok() && facts_of(kind_).syncs_new_space) status = file_.sync();
  read_single_pages();
  return status;
}

/// On a disk the kernel reads in what lies around a page that is not in memory, up to 8 MB. In a
/// pool that is larger than memory that drives out pages which others need. So from half of the
/// memory on it reads single pages, and read_ahead says where it should read more.
void ObjectPool::read_single_pages() noexcept {
  if (!has_journal() || reads_single_pages_) return;
  const Result<std::uint64_t> occupied = file_.occupied_bytes();
  if (!occupied.ok() || *occupied < memory_bytes_ / 2) return;
  reads_single_pages_ = true;
  advise_single_pages(0);
}

void ObjectPool::advise_single_pages(std::uint64_t begin) noexcept {
  FLUGS_CHECK(begin <= mapped_bytes_);
  ::madvise(space_.base() + begin, mapped_bytes_ - begin, MADV_RANDOM);
}

void ObjectPool::read_ahead(std::span<const std::byte> bytes) noexcept {
  if (!reads_single_pages_ || bytes.empty()) return;
  const auto offset = static_cast<std::uint64_t>(bytes.data() - space_.base());
  const std::uint64_t begin = offset / kPageBytes * kPageBytes;
  ::madvise(space_.base() + begin, offset + bytes.size() - begin, MADV_WILLNEED);
}

Status ObjectPool::punch(std::uint64_t offset, std::uint64_t bytes) {
  FLUGS_CHECK(has_range(offset, bytes));
  return journal_ != nullptr ? punch_with_journal(offset, bytes) : file_.punch(offset, bytes);
}

// An extent in use has its blocks; in a hole this would allocate some. Reading suffices, and copies
// nothing where the mapping is private.
bool ObjectPool::warm(Extent extent) noexcept {
  const std::uint64_t begin = extent.offset / kPageBytes * kPageBytes;
  const std::uint64_t end = round_up(extent.offset + extent.bytes, kPageBytes);
  read_ahead({space_.base() + begin, end - begin});
  return ::madvise(space_.base() + begin, end - begin, MADV_POPULATE_READ) == 0;
}

void ObjectPool::populate(std::uint64_t offset, std::uint64_t bytes) noexcept {
  FLUGS_CHECK(has_range(offset, bytes));
  const int advice = facts_of(kind_).populate_advice;
  std::byte* const base = space_.base();
  const std::uint64_t end = offset + bytes;
  for (std::uint64_t at = offset / kPageBytes * kPageBytes; at < end; at += kPopulateStepBytes) {
    const std::uint64_t step = round_up(std::min(kPopulateStepBytes, end - at), kPageBytes);
    if (::madvise(base + at, step, advice) == 0) continue;
    // Kernels before 5.14: a locked `or` of 0 into a byte of each page. It is atomic, because
    // others may already be writing there, and in assembler, because it races with them on purpose.
    for (std::uint64_t page = at; page < at + step; page += kPageBytes) {
      asm volatile("lock orb $0, (%0)" ::"r"(base + page) : "memory");
    }
  }
}

}  // namespace flugs::pmem
