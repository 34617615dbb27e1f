#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "pmem/kinds/address_space.h"
#include "pmem/kinds/mapped_pool.h"
#include "pmem/kinds/pool_file.h"
#include "pmem/medium/file_view.h"

namespace flugs::pmem {

/// A pool in memory of its own, which goes with it. The memory is taken page by page as it is
/// written.
class OwnMemoryPool final : public MappedPool {
 public:
  static Result<std::unique_ptr<Pool>> create(const PoolOptions& options);
  ~OwnMemoryPool() override;

  Status provide(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) override { return {}; }
  Status punch(std::uint64_t offset, std::uint64_t bytes) override;
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  explicit OwnMemoryPool(AddressSpace space) : MappedPool("(memory)"), space_(std::move(space)) {}
  Status extend(std::uint64_t before, std::uint64_t bytes) override;

  AddressSpace space_;
};

/// A pool in a file that this process reads and no process writes meanwhile. Recovery, and
/// everything else that would write to the pool, writes to pages of this process. The file needs no
/// permission to be written.
class ReadOnlyPool final : public MappedPool {
 public:
  /// Fails as Pool::open; kBusy: a process has the pool open for writing.
  static Result<std::unique_ptr<Pool>> open(const PoolOptions& options);
  ~ReadOnlyPool() override { detach(); }

  Status provide(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) override { return {}; }
  Status punch(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) override {
    return Status(StatusCode::kReadOnly);
  }
  void populate(std::uint64_t /*offset*/, std::uint64_t /*bytes*/) noexcept override {}

 private:
  ReadOnlyPool(PoolFile file, FileView view)
      : MappedPool(file.path()), file_(std::move(file)), view_(std::move(view)) {}
  Status take_file(const PoolOptions& options);

  PoolFile file_;  // keeps the lock
  FileView view_;
};

}  // namespace flugs::pmem
