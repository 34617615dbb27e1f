#include "pmem/kinds/memory_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace flugs::pmem {

namespace {

Status check_alignment(std::span<const std::byte> buffer) {
  if (reinterpret_cast<std::uintptr_t>(buffer.data()) % kPageBytes == 0) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("a pool in memory needs a buffer aligned to {} bytes", kPageBytes));
}

}  // namespace

MemoryPool::MemoryPool(std::span<std::byte> buffer, std::uint64_t bytes, const PoolOptions& options)
    : MappedPool("(memory)"), buffer_(buffer) {
  attach(MediumKind::kMemory, buffer.first(bytes), options,
         reinterpret_cast<PoolRoot*>(buffer.data()));
}

Result<std::unique_ptr<Pool>> MemoryPool::create(std::span<std::byte> buffer,
                                                 const PoolOptions& options) {
  Status status = check_options(options);
  if (status.ok()) status = check_alignment(buffer);
  if (!status.ok()) return status;
  const std::uint64_t unit = options.extent_unit_bytes;
  const std::uint64_t begin = (root_bytes(1) + unit - 1) / unit * unit;
  const std::uint64_t bytes = options.max_bytes == 0
                                  ? buffer.size()
                                  : std::min<std::uint64_t>(options.max_bytes, buffer.size());
  if (bytes < begin + unit) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("a pool in memory needs at least {} bytes with extents of {}, got {}",
                              begin + unit, unit, bytes));
  }
  std::memset(buffer.data(), 0, buffer.size());
  std::unique_ptr<MemoryPool> pool(new MemoryPool(buffer, bytes, options));
  const ArenaRecord arena{.offset = begin,
                          .bytes = (bytes - begin) / unit * unit,
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
  const auto* root = reinterpret_cast<const PoolRoot*>(buffer.data());
  const Result<PoolHeader> header = choose_header(root->headers, buffer.size(), "(memory)");
  if (!header.ok()) return header.status();
  std::unique_ptr<MemoryPool> pool(new MemoryPool(buffer, header->max_bytes, options));
  status = pool->take(header->max_bytes, options);
  if (!status.ok()) return status;
  return std::unique_ptr<Pool>(std::move(pool));
}

Status MemoryPool::punch(std::uint64_t offset, std::uint64_t bytes) {
  FLUGS_CHECK(has_range(offset, bytes));
  Persister persister(medium());
  persister.zero(base() + offset, bytes, "hole-punch/2");
  persister.fence("hole-punch/2");
  return {};
}

Status MemoryPool::extend(std::uint64_t /*before*/, std::uint64_t bytes) {
  if (bytes <= buffer_.size()) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("(memory): cannot get max_bytes, {} bytes: its buffer has {}", bytes,
                            buffer_.size()));
}

}  // namespace flugs::pmem
