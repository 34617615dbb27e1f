#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/check.h"
#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/segment_allocator.h"
#include "pmem/space/segment_source.h"

namespace flugs::pmem {

/// The common part of pools on a file and in a buffer: everything but the source of their bytes.
class MappedPool : public Pool, public SegmentSource {
 public:
  Medium& medium() noexcept override {
    FLUGS_DCHECK(medium_.has_value());
    return *medium_;
  }
  ExtentAllocator& allocator() noexcept override {
    FLUGS_DCHECK(allocator_.has_value());
    return *allocator_;
  }
  std::byte* application_root() noexcept override { return root_->application_root.data(); }
  const std::string& path() const noexcept override { return path_; }
  std::uint64_t uuid() const noexcept override { return root_->headers[0].uuid; }
  std::uint32_t format_version() const noexcept override {
    return root_->headers[0].format_version;
  }
  Status grow(std::uint64_t max_bytes) override;
  void persist_hole_bytes(std::uint64_t bytes, Persister& persister) noexcept override {
    pmem::persist_hole_bytes(*root_, bytes, persister);
  }

 protected:
  explicit MappedPool(std::string path) : path_(std::move(path)) {}

  /// Call it once, before the functions below. The pool is mapped, and has as many bytes as
  /// `mapping`; its root is at `root`.
  void attach(MediumKind kind, std::span<std::byte> mapping, const PoolOptions& options,
              PoolRoot* root);
  /// The devices that the pool lies on, before it is attached. With a count of shutdowns it is
  /// marked as in use from opening to closing, unless the medium has a journal.
  void lie_on(Nvdimms nvdimms) {
    FLUGS_CHECK(!medium_.has_value());
    nvdimms_ = std::move(nvdimms);
  }
  const Nvdimms& nvdimms() const noexcept { return nvdimms_; }
  /// Everything that was flushed lies on the devices, and waits nowhere before them, when this
  /// returns ok. Called only if they count their shutdowns.
  virtual Status drain() { return {}; }
  /// Closing: the pool is no longer in use. No thread may store into it afterwards.
  void end_use() noexcept;
  /// Makes a new pool: arenas as given, the first segment provided, the header last.
  Status make(const PoolOptions& options, std::span<const ArenaRecord> arenas);
  /// Opens the pool that its header describes, and makes it as large as `options` want it. Root and
  /// arena table may have `root_capacity` bytes.
  Status take(std::uint64_t root_capacity, const PoolOptions& options);
  /// Opens just its space, as `arenas` describe it.
  void take_as(std::span<ArenaRecord> arenas, const SpaceShape& shape);
  /// Step 1 of protocol pool-grow: makes the pool's bytes up to `bytes` usable address space,
  /// behind those up to `before`, in a file as long. Fails as `grow`.
  virtual Status extend(std::uint64_t before, std::uint64_t bytes);
  /// Why `extend` fails if the address space of this process has only `reserved` bytes for the
  /// pool.
  Status no_address_space(std::uint64_t bytes, std::uint64_t reserved);
  /// Stops handing out space.
  void detach_allocator() noexcept { allocator_.reset(); }
  /// Stops using the mapping. Call it before the mapping is removed.
  void detach() noexcept;
  /// Whether [offset, offset + bytes) lies in the pool.
  bool has_range(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return bytes <= medium_->bytes() && offset <= medium_->bytes() - bytes;
  }

  SegmentAllocator& segments() noexcept { return *allocator_; }
  PoolRoot* root() noexcept { return root_; }

 private:
  Status begin_use();
  Result<std::uint64_t> grow_to(std::uint64_t max_bytes);

  std::string path_;
  Nvdimms nvdimms_;
  bool is_marked_ = false;  // the header says that it is in use
  std::optional<Medium> medium_;
  PoolRoot* root_ = nullptr;
  std::optional<SegmentAllocator> allocator_;
};

}  // namespace flugs::pmem
