#include "pmem/kinds/private_pools.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "pmem/kinds/object_format.h"
#include "pmem/kinds/object_pool.h"

namespace flugs::pmem {

OwnMemoryPool::OwnMemoryPool(std::span<std::byte> memory, const PoolOptions& options)
    : MappedPool("(memory)"), memory_(memory) {
  attach(MediumKind::kMemory, memory, options, reinterpret_cast<PoolRoot*>(memory.data()));
}

OwnMemoryPool::~OwnMemoryPool() {
  detach();
  ::munmap(memory_.data(), memory_.size());
}

// The kernel gives zeros, as `make` needs them. A forked child gets zeros, too: its copy of the
// pool would be a second database.
Result<std::unique_ptr<Pool>> OwnMemoryPool::create(const PoolOptions& options) {
  Status status = check_options(options);
  if (!status.ok()) return status;
  if (options.max_bytes < kFilePoolBytesMin || options.max_bytes > kPoolBytesMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("(memory): max_bytes is {}, must be at least {} and at most {}",
                              options.max_bytes, kFilePoolBytesMin, kPoolBytesMax));
  const std::uint64_t bytes = options.max_bytes / kPageBytes * kPageBytes;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return Status(StatusCode::kOutOfSpace,
                  fmt::format("(memory): cannot reserve max_bytes, {} bytes of address space: {}",
                              bytes, std::strerror(errno)));
  ::madvise(memory, bytes, MADV_WIPEONFORK);
  std::unique_ptr<OwnMemoryPool> pool(
      new OwnMemoryPool({static_cast<std::byte*>(memory), bytes}, options));
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

// Nobody may cut the file off while it is mapped: its lock keeps other openers out.
Status ReadOnlyPool::take_file(const PoolOptions& options) {
  const std::span<std::byte> bytes = view_.bytes();
  Status status = check_object_head(bytes, path());
  if (status.ok()) status = check_object_descriptor(bytes, path());
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
  attach(MediumKind::kPrivate, bytes, options, reinterpret_cast<PoolRoot*>(bytes.data() + first));
  return take(capacity - kLineBytes);
}

}  // namespace flugs::pmem
