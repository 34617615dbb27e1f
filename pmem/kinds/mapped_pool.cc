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
  medium_->set_nvdimms(nvdimms_);
  medium_->set_observer(options.observer);
  root_ = root;
}

Status MappedPool::make(const PoolOptions& options, std::span<const ArenaRecord> arenas) {
  FLUGS_CHECK(medium_.has_value() && !allocator_.has_value());
  FLUGS_CHECK(!arenas.empty() && arenas.size() <= kArenaCountMax);
  FLUGS_CHECK(has_range(arenas.back().offset, arenas.back().bytes));
  *root_ = PoolRoot{};
  std::copy(arenas.begin(), arenas.end(), root_->arenas());
  allocator_.emplace(*medium_, *this, std::span<ArenaRecord>(root_->arenas(), arenas.size()),
                     SpaceShape{.end = arenas.back().offset + arenas.back().bytes,
                                .segment_bytes = options.segment_bytes,
                                .unit_bytes = options.extent_unit_bytes},
                     SegmentAllocator::Origin::kCreated);
  if (!options.gives_back) allocator_->keep_all();
  Status status = allocator_->grow_by_slice();
  if (!status.ok()) return status;
  Persister persister(*medium_);
  publish_new_root(*root_, options, medium_->bytes(), static_cast<std::uint32_t>(arenas.size()),
                   persister);
  return begin_use();
}

/// Protocol in-use, at opening. A pool that lies on devices without a count now loses the mark that
/// it has brought along: opening it was accepted.
Status MappedPool::begin_use() {
  const bool has_count = nvdimms_.shutdowns && medium_->facts().flush == FlushMethod::kInstructions;
  const ShutdownCount by = has_count ? *nvdimms_.shutdowns : ShutdownCount{};
  {
    Persister persister(*medium_);
    set_in_use(*root_, by, persister);
  }
  is_marked_ = has_count;
  return is_marked_ ? drain() : Status();
}

/// In a forked child draining fails, so the child does not end what its parent goes on using, and
/// does not wait for a thread that it has not got. The allocator's thread stores until it ends.
void MappedPool::end_use() noexcept {
  if (!is_marked_ || !drain().ok()) return;
  detach_allocator();
  if (!drain().ok()) return;
  {
    Persister persister(*medium_);
    set_in_use(*root_, {}, persister);
  }
  is_marked_ = false;
  static_cast<void>(drain());  // else the next opening may suspect a loss that there is not
}

Status MappedPool::take(std::uint64_t root_capacity, const PoolOptions& options) {
  FLUGS_CHECK(medium_.has_value() && !allocator_.has_value());
  const Result<PoolHeader> header = choose_header(root_->headers, medium_->bytes(), path_);
  if (!header.ok()) return header.status();
  if (header->max_bytes != medium_->bytes()) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: the header has changed since it was read: expected {} bytes, "
                              "found {}",
                              path_, medium_->bytes(), header->max_bytes));
  }
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
  }
  if (status = begin_use(); !status.ok()) return status;
  {
    Persister persister(*medium_);
    // Headers, the limits of arenas, and the application root.
    persister.persist(root_, root_bytes(header->arena_count), "rely/1");
  }
  take_as(arenas, shape_of(*header, arenas.back()));
  if (!options.gives_back) allocator_->keep_all();
  return options.max_bytes == 0 ? Status() : grow(options.max_bytes);
}

void MappedPool::take_as(std::span<ArenaRecord> arenas, const SpaceShape& shape) {
  FLUGS_CHECK(medium_.has_value() && !allocator_.has_value());
  allocator_.emplace(*medium_, *this, arenas, shape, SegmentAllocator::Origin::kOpened);
}

Status MappedPool::grow(std::uint64_t max_bytes) {
  return allocator_->move_end([&] { return grow_to(max_bytes); });
}

/// Returns where the last arena ends then. The protocol is at grow_headers.
Result<std::uint64_t> MappedPool::grow_to(std::uint64_t max_bytes) {
  const std::uint64_t before = medium_->bytes();
  const std::uint64_t wanted = max_bytes / kPageBytes * kPageBytes;
  PoolHeader header = root_->headers[0];
  const ArenaRecord& last = root_->arenas()[header.arena_count - 1];
  // A size that is not rounded is that of the pool, too.
  if (max_bytes == before || (wanted <= before && before <= max_bytes))
    return last_arena_end(header, last);
  Status status = check_growth(before, max_bytes, path_);
  if (status.ok()) status = medium_->check_writable();
  if (status.ok()) status = extend(before, wanted);
  if (!status.ok()) return status;
  Persister persister(*medium_);
  grow_headers(*root_, wanted, persister);
  if (Status s = persister.wait_durable(); !s.ok()) return s;
  medium_->grow(wanted);
  return last_arena_end(root_->headers[0], last);
}

Status MappedPool::extend(std::uint64_t before, std::uint64_t bytes) {
  return Status(StatusCode::kReadOnly,
                fmt::format("{}: cannot get max_bytes, {} bytes, from {}: open for reading only",
                            path_, bytes, before));
}

Status MappedPool::no_address_space(std::uint64_t bytes, std::uint64_t reserved) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}: cannot get max_bytes, {} bytes, while it is open: the process has "
                            "{} bytes of address space for it; close the database and open it with "
                            "the larger OpenOptions::max_bytes",
                            path_, bytes, reserved));
}

void MappedPool::detach() noexcept {
  allocator_.reset();
  medium_.reset();
}

}  // namespace flugs::pmem
