#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "pmem/kinds/mapped_pool.h"

namespace flugs::pmem {

/// A pool in a buffer of the process: root at offset 0, then one arena. Opening costs microseconds.
class MemoryPool final : public MappedPool {
 public:
  static Result<std::unique_ptr<Pool>> create(std::span<std::byte> buffer,
                                              const PoolOptions& options);
  static Result<std::unique_ptr<Pool>> open(std::span<std::byte> buffer,
                                            const PoolOptions& options);
  ~MemoryPool() override { detach(); }

  Status provide(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) override { return {}; }
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  MemoryPool(std::span<std::byte> buffer, const PoolOptions& options);
};

}  // namespace flugs::pmem
