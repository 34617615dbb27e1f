#include "pmem/pool.h"

#include "pmem/memory_pool.h"
#include "pmem/object_pool.h"

namespace flugs::pmem {

Result<std::unique_ptr<Pool>> Pool::create(const PoolOptions& options) {
  return ObjectPool::create(options);
}

Result<std::unique_ptr<Pool>> Pool::open(const PoolOptions& options) {
  return ObjectPool::open(options);
}

Result<std::unique_ptr<Pool>> Pool::create_in_memory(std::span<std::byte> buffer,
                                                     const PoolOptions& options) {
  return MemoryPool::create(buffer, options);
}

Result<std::unique_ptr<Pool>> Pool::open_in_memory(std::span<std::byte> buffer,
                                                   const PoolOptions& options) {
  return MemoryPool::open(buffer, options);
}

}  // namespace flugs::pmem
