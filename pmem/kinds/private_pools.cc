#include "pmem/kinds/private_pools.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/fork.h"
#include "pmem/kinds/file_journal.h"
#include "pmem/kinds/object_format.h"
#include "pmem/kinds/object_pool.h"

namespace flugs::pmem {

OwnMemoryPool::~OwnMemoryPool() { detach(); }

Result<std::unique_ptr<Pool>> OwnMemoryPool::create(const PoolOptions& options) {
  Status status = check_options(options);
  if (!status.ok()) return status;
  const std::uint64_t wanted = options.max_bytes == 0 ? kPoolBytesDefault : options.max_bytes;
  if (wanted < kFilePoolBytesMin || wanted > kPoolBytesMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("(memory): max_bytes is {}, must be at least {} and at most {}",
                              wanted, kFilePoolBytesMin, kPoolBytesMax));
  const std::uint64_t bytes = wanted / kPageBytes * kPageBytes;
  Result<AddressSpace> space = AddressSpace::reserve(bytes, kPageBytes, "(memory)");
  if (!space.ok()) return std::move(space).status();
  std::unique_ptr<OwnMemoryPool> pool(new OwnMemoryPool(*std::move(space)));
  status = pool->extend(0, bytes);
  if (!status.ok()) return status;
  std::byte* const base = pool->space_.base();
  pool->attach(MediumKind::kMemory, {base, bytes}, options, reinterpret_cast<PoolRoot*>(base));
  const std::uint64_t unit = options.extent_unit_bytes;
  const std::uint64_t begin = round_up(root_bytes(1), unit);
  const ArenaRecord arena{.offset = begin,
                          .bytes = (bytes - begin) / unit * unit,
                          .allocated_limit = begin,
                          .touched_limit = begin};
  status = pool->make(options, std::span<const ArenaRecord>(&arena, 1));
  if (!status.ok()) return status;
  return std::unique_ptr<Pool>(std::move(pool));
}

// The kernel gives zeros, as `make` needs them. A forked child gets zeros, too: its copy of the
// pool would be a second database.
Status OwnMemoryPool::extend(std::uint64_t before, std::uint64_t bytes) {
  FLUGS_CHECK(before < bytes);
  if (bytes > space_.bytes()) return no_address_space(bytes, space_.bytes());
  const ForkPause pause;
  std::byte* const begin = space_.base() + before;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (::mmap(begin, bytes - before, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) {
    const int error = errno;
    space_.cut(before);
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("(memory): cannot get max_bytes, {} bytes of address space: {}",
                              bytes, std::strerror(error)));
  }
  ::madvise(begin, bytes - before, MADV_WIPEONFORK);
  return {};
}

/// The kernel would take a part of a page for the whole page.
Status OwnMemoryPool::punch(std::uint64_t offset, std::uint64_t bytes) {
  FLUGS_CHECK(has_range(offset, bytes));
  FLUGS_CHECK(offset % kPageBytes == 0 && bytes % kPageBytes == 0);
  if (::madvise(base() + offset, bytes, MADV_DONTNEED) == 0) return {};
  return Status(StatusCode::kIoError, "(memory): madvise");
}

Result<std::unique_ptr<Pool>> ReadOnlyPool::open(const PoolOptions& options) {
  Result<PoolFile> file = PoolFile::open_to_read(options.path);
  if (!file.ok()) return file.status();
  Result<FileView> view = file->view();
  if (!view.ok()) return view.status();
  std::unique_ptr<ReadOnlyPool> pool(new ReadOnlyPool(*std::move(file), *std::move(view)));
  Status status = pool->take_file(options);
  if (!status.ok()) return status;
  return std::unique_ptr<Pool>(std::move(pool));
}

// No process may cut the file off while it is mapped: its lock keeps other openers out.
Status ReadOnlyPool::take_file(const PoolOptions& options) {
  const std::span<std::byte> bytes = view_.bytes();
  Status status = check_object_head(bytes, path());
  if (status.ok()) status = replay_into_view(file_, journal_needed_by(bytes), bytes);
  if (!status.ok()) return status;
  std::uint64_t root = 0;
  std::uint64_t capacity = 0;
  std::memcpy(&root, bytes.data() + kRootOffsetOffset, sizeof root);
  std::memcpy(&capacity, bytes.data() + kRootBytesOffset, sizeof capacity);
  const std::uint64_t first = root <= bytes.size() ? round_up(root, kLineBytes) : bytes.size();
  if (capacity < sizeof(PoolRoot) + kLineBytes || capacity > bytes.size() ||
      first > bytes.size() - capacity)
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: root object at offset {} of {} bytes: expected it inside the "
                              "file of {} bytes",
                              path(), root, capacity, bytes.size()));
  auto* const root_in_file = reinterpret_cast<PoolRoot*>(bytes.data() + first);
  const Result<PoolHeader> header = choose_header(root_in_file->headers, bytes.size(), path());
  if (!header.ok()) return header.status();
  lie_on(file_.nvdimms(options.sysfs));
  if (!options.accepts_lost_lines) status = check_shutdowns(*header, nvdimms(), path());
  if (!status.ok()) return status;
  status = check_object_descriptor(bytes.first(created_bytes_of(*header)), path());
  if (!status.ok()) return status;
  attach(MediumKind::kPrivate, bytes.first(header->max_bytes), options, root_in_file);
  return take(capacity - kLineBytes, options);
}

}  // namespace flugs::pmem
