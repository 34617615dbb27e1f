#include "pmem/kinds/memory_pool.h"

#include <fmt/format.h>

#include <cstring>

namespace flugs::pmem {

namespace {

Status check_alignment(std::span<std::byte> buffer) {
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % kLineBytes == 0) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("a pool in memory needs a buffer aligned to {} bytes", kLineBytes));
}

}  // namespace

MemoryPool::MemoryPool(std::span<std::byte> buffer, const PoolOptions& options)
    : MappedPool("(memory)") {
  attach(MediumKind::kMemory, buffer, options, reinterpret_cast<PoolRoot*>(buffer.data()));
}

Result<std::unique_ptr<Pool>> MemoryPool::create(std::span<std::byte> buffer,
                                                 const PoolOptions& options) {
  Status status = check_options(options);
  if (status.ok()) status = check_alignment(buffer);
  if (!status.ok()) return status;
  const std::uint64_t unit = options.extent_unit_bytes;
  const std::uint64_t begin = (root_bytes(1) + unit - 1) / unit * unit;
  if (buffer.size() < begin + unit) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a pool in memory needs at least {} bytes with extents of {}, got {}",
                              begin + unit, unit, buffer.size()));
  }
  std::memset(buffer.data(), 0, buffer.size());
  std::unique_ptr<MemoryPool> pool(new MemoryPool(buffer, options));
  const ArenaRecord arena{.offset = begin,
                          .bytes = (buffer.size() - begin) / unit * unit,
                          .allocated_limit = begin,
                          .touched_limit = begin};
  status = pool->make(options, std::span<const ArenaRecord>(&arena, 1));
  if (!status.ok()) return status;
  return std::unique_ptr<Pool>(std::move(pool));
}

Result<std::unique_ptr<Pool>> MemoryPool::open(std::span<std::byte> buffer,
                                               const PoolOptions& options) {
  Status status = check_alignment(buffer);
  if (!status.ok()) return status;
  if (buffer.size() < root_bytes(1)) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("(memory): {} bytes, fewer than the header's {}", buffer.size(),
                              root_bytes(1)));
  }
  std::unique_ptr<MemoryPool> pool(new MemoryPool(buffer, options));
  status = pool->take(buffer.size());
  if (!status.ok()) return status;
  return std::unique_ptr<Pool>(std::move(pool));
}

}  // namespace flugs::pmem
