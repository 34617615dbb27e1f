#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mvcc/commit.h"
#include "mvcc/transaction_slots.h"
#include "pmem/pool/pool.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/temporary_pool.h"

namespace flugs::test {

/// Transaction slots in a buffer, and rows (MVCC entries only) for them. Main thread only.
class TestSlots {
 public:
  static constexpr std::size_t kRows = 1024;
  static constexpr std::size_t kBytes = std::size_t{4} << 20;

  explicit TestSlots(std::uint32_t slot_count) : buffer_(kBytes) {
    pmem::PoolOptions options;
    options.segment_bytes = std::uint64_t{1} << 20;
    start(pmem::Pool::create_in_memory(buffer_.span(), options), slot_count);
  }
  /// The same in a file.
  TestSlots(std::uint32_t slot_count, const std::string& path) : buffer_(kBytes) {
    pmem::PoolOptions options;
    options.path = path;
    options.max_bytes = kFileBytes;
    options.segment_bytes = std::uint64_t{1} << 20;
    options.grow_ahead_bytes = 0;
    start(pmem::Pool::create(options), slot_count);
  }

 private:
  void start(Result<std::unique_ptr<pmem::Pool>> made, std::uint32_t slot_count) {
    INFO(made.status().to_string());
    REQUIRE(made.ok());
    pool_ = std::move(*made);
    slots_.emplace(*pool_, root());
    REQUIRE(slots_->create(slot_count).ok());
    slots_->start(slot_count);
    pmem::Persister persister(pool_->medium());
    const auto extent = pool_->allocator().allocate(kRows * sizeof(mvcc::VersionLayout), persister);
    REQUIRE(extent.ok());
    rows_offset_ = extent->offset;
    persister.fence("extent-zero/1");
  }

 public:
  mvcc::TransactionSlots& operator*() { return *slots_; }
  mvcc::TransactionSlots* operator->() { return &*slots_; }
  pmem::Pool& pool() { return *pool_; }
  std::span<std::byte> memory() const { return buffer_.span(); }
  std::uint64_t& root() { return *reinterpret_cast<std::uint64_t*>(pool_->application_root()); }
  mvcc::VersionLayout& row(std::uint32_t number) {
    return pool_->at(pmem::OffsetPtr<mvcc::VersionLayout>{rows_offset_})[number];
  }

  enum class End : std::uint8_t { kClosed, kKilled };
  /// Closes the pool, or leaves it as a process does that is killed, and opens it again; what
  /// `load` says.
  Status reopen(std::uint32_t slot_count, mvcc::TransactionSlots::LoadCounts& counts,
                End end = End::kClosed) {
    const std::vector<std::byte> left(memory().begin(), memory().end());
    slots_.reset();
    pool_.reset();
    if (end == End::kKilled) std::copy(left.begin(), left.end(), memory().begin());
    counts = {};
    auto opened = pmem::Pool::open_in_memory(buffer_.span(), pmem::PoolOptions{});
    if (!opened.ok()) return std::move(opened).status();
    pool_ = std::move(*opened);
    slots_.emplace(*pool_, root());
    const auto claimed =
        pool_->allocator().claim({rows_offset_, kRows * sizeof(mvcc::VersionLayout)}, "rows");
    if (!claimed.ok()) return claimed;
    const auto locate = [this](std::uint32_t table, std::uint32_t row) {
      return table == 1 && row < kRows ? &this->row(row) : nullptr;
    };
    if (Status s = slots_->load(locate, counts); !s.ok()) return s;
    slots_->forget_all_intents();
    pool_->allocator().finish_claims();
    if (Status s = slots_->grow(slot_count); !s.ok()) return s;
    slots_->start(slot_count);
    return {};
  }

  mvcc::Visibility begin(mvcc::Slot& slot) {
    const std::uint64_t snapshot = slots_->begin_snapshot(slot);
    slots_->begin_writing(slot);
    return {slots_->mirrors(), snapshot, slot.tag()};
  }
  /// What an insert of `number` does before the commit.
  mvcc::Write insert(mvcc::Slot& slot, std::uint32_t number) {
    mvcc::store_stamp(row(number).deleted, mvcc::kNoStamp);
    mvcc::store_stamp(row(number).created, slot.tag());
    return {&row(number), 1, number, sizeof(mvcc::VersionLayout), false};
  }
  mvcc::Write deletion(std::uint32_t number) {
    return {&row(number), 1, number, sizeof(mvcc::VersionLayout), true};
  }
  Result<std::uint64_t> commit(mvcc::Slot& slot, const std::vector<mvcc::Write>& writes,
                               std::optional<std::chrono::microseconds> soon = {}) {
    return mvcc::Commit(*slots_, soon)
        .run(slot, writes, 0, [](pmem::Persister&) {}, [] {}, [](std::uint64_t) { return true; });
  }

 private:
  static constexpr std::uint64_t kFileBytes = std::uint64_t{64} << 20;

  PoolBuffer buffer_;
  std::unique_ptr<pmem::Pool> pool_;
  std::optional<mvcc::TransactionSlots> slots_;
  std::uint64_t rows_offset_ = 0;
};

}  // namespace flugs::test
