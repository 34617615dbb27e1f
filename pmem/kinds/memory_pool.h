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
  /// Stores zeros, which is what a file system does, so that the crash-state explorer sees it.
  Status punch(std::uint64_t offset, std::uint64_t bytes) override;
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  /// The pool has the first `bytes` of the buffer.
  MemoryPool(std::span<std::byte> buffer, std::uint64_t bytes, const PoolOptions& options);
  Status extend(std::uint64_t before, std::uint64_t bytes) override;

  std::span<std::byte> buffer_;
};

}  // namespace flugs::pmem
