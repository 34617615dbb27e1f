#include "pmem/kinds/mapped_pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"

namespace flugs::pmem {

void MappedPool::attach(MediumKind kind, std::span<std::byte> mapping, const PoolOptions& options,
                        PoolRoot* root) {
  FLUGS_CHECK(reinterpret_cast<std::uintptr_t>(root) % kLineBytes == 0);
  FLUGS_CHECK(!medium_.has_value());
  medium_.emplace(kind, mapping.data(), mapping.size(), options.latency);
  medium_->set_observer(options.observer);
  root_ = root;
}

Status MappedPool::make(const PoolOptions& options, std::span<const ArenaRecord> arenas) {
  FLUGS_CHECK(medium_.has_value() && !allocator_.has_value());
  FLUGS_CHECK(!arenas.empty() && arenas.size() <= kArenaCountMax);
  *root_ = PoolRoot{};
  std::copy(arenas.begin(), arenas.end(), root_->arenas());
  allocator_.emplace(*medium_, *this, std::span<ArenaRecord>(root_->arenas(), arenas.size()),
                     options.segment_bytes, options.extent_unit_bytes,
                     SegmentAllocator::Origin::kCreated);
  Status status = allocator_->grow_by_segment();
  if (!status.ok()) return status;
  Persister persister(*medium_);
  publish_new_root(*root_, options, medium_->bytes(), static_cast<std::uint32_t>(arenas.size()),
                   persister);
  return {};
}

Status MappedPool::take(std::uint64_t root_capacity) {
  FLUGS_CHECK(medium_.has_value() && !allocator_.has_value());
  const Result<PoolHeader> header = choose_header(root_->headers, medium_->bytes(), path_);
  if (!header.ok()) return header.status();
  if (root_bytes(header->arena_count) > root_capacity) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: root has {} bytes, {} arenas need {}", path_, root_capacity,
                              header->arena_count, root_bytes(header->arena_count)));
  }
  const std::span<ArenaRecord> arenas(root_->arenas(), header->arena_count);
  const auto root_offset =
      static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(root_) - medium_->base());
  Status status =
      check_arenas(*header, arenas, root_offset + root_bytes(header->arena_count), path_);
  if (!status.ok()) return status;
  {
    Persister persister(*medium_);
    repair_headers(*root_, *header, persister);
    // Headers, the limits of arenas, and the application root.
    persister.persist(root_, root_bytes(header->arena_count), "rely/1");
  }
  take_as(arenas, header->segment_bytes, header->extent_unit_bytes);
  return {};
}

void MappedPool::take_as(std::span<ArenaRecord> arenas, std::uint64_t segment_bytes,
                         std::uint32_t unit_bytes) {
  allocator_.emplace(*medium_, *this, arenas, segment_bytes, unit_bytes,
                     SegmentAllocator::Origin::kOpened);
}

void MappedPool::detach() noexcept {
  allocator_.reset();
  medium_.reset();
}

}  // namespace flugs::pmem
