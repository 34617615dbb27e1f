#include "pmem/pool/pool.h"

#include "pmem/kinds/memory_pool.h"
#include "pmem/kinds/object_pool.h"
#include "pmem/kinds/private_pools.h"
#include "pmem/pool/found_words.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::pmem {

Result<std::unique_ptr<Pool>> Pool::create(const PoolOptions& options) {
  return ObjectPool::create(options);
}

Result<std::unique_ptr<Pool>> Pool::open(const PoolOptions& options) {
  return ObjectPool::open(options);
}

Result<std::unique_ptr<Pool>> Pool::open_to_read(const PoolOptions& options) {
  return ReadOnlyPool::open(options);
}

Result<std::unique_ptr<Pool>> Pool::create_in_own_memory(const PoolOptions& options) {
  return OwnMemoryPool::create(options);
}

Result<std::unique_ptr<Pool>> Pool::create_in_memory(std::span<std::byte> buffer,
                                                     const PoolOptions& options) {
  return MemoryPool::create(buffer, options);
}

Result<std::unique_ptr<Pool>> Pool::open_in_memory(std::span<std::byte> buffer,
                                                   const PoolOptions& options) {
  return MemoryPool::open(buffer, options);
}

Status Pool::grow(std::uint64_t) {
  return Status(StatusCode::kReadOnly, path() + ": the pool cannot grow");
}

bool Pool::warm(Extent) noexcept { return false; }

void Pool::read_ahead(std::span<const std::byte>) noexcept {}

void Pool::rely_on(const void* address, std::size_t bytes) {
  if (found_words_ != nullptr) found_words_->add(address, bytes);
}

}  // namespace flugs::pmem
