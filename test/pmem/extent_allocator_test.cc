#include "pmem/space/extent_allocator.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "pmem/pool/pool.h"
#include "test/support/filled_with.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

using test::is_filled_with;
using test::PoolBuffer;
using test::TemporaryPath;

PoolOptions small_options(std::uint32_t unit = 256) {
  PoolOptions options;
  options.extent_unit_bytes = unit;
  options.segment_bytes = 16384;
  return options;
}

void check_balance(const ExtentAllocator& allocator) {
  const SpaceReport space = allocator.space();
  REQUIRE(space.used_bytes + allocator.free_bytes() + space.overhead_bytes ==
          space.allocated_bytes);
}

TEST_CASE("an extent is rounded up to the unit and reads zero", "[pmem][extent]") {
  const PoolBuffer buffer(131072);
  const std::uint32_t unit = GENERATE(64U, 256U, 4096U);
  auto pool = Pool::create_in_memory(buffer.span(), small_options(unit));
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  CHECK(allocator.unit_bytes() == unit);
  Persister persister((*pool)->medium());
  for (const std::uint64_t bytes : {1UL, 63UL, 64UL, 65UL, 4096UL, 5000UL}) {
    auto extent = allocator.allocate(bytes, persister);
    REQUIRE(extent.ok());
    CHECK(extent->offset % unit == 0);
    CHECK(extent->bytes == (bytes + unit - 1) / unit * unit);
  }
  check_balance(allocator);
}

TEST_CASE("recycled space is zeroed and flushed through the caller's persister", "[pmem][extent]") {
  const PoolBuffer buffer(131072);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  const Extent first = *allocator.allocate(1024, persister);
  CHECK_FALSE(persister.has_unfenced_flushes());  // fresh space is zero as it is
  std::memset((*pool)->base() + first.offset, 0x77, 1024);
  allocator.release(first);
  const Extent second = *allocator.allocate(2048, persister);
  CHECK(second.offset == first.offset);
  CHECK(persister.counters().lines_flushed == 16);  // the used half only
  persister.fence("test/1");
  const std::byte* bytes = (*pool)->base() + second.offset;
  CHECK(is_filled_with(std::byte{0}, bytes, 2048));
}

TEST_CASE("an allocation writes nothing to the pool but a rare limit", "[pmem][extent]") {
  const TemporaryPath path;
  PoolOptions options;
  options.path = path.string();
  options.grow_ahead_bytes = 0;
  auto pool = Pool::create(options);
  REQUIRE(pool.ok());
  Persister persister((*pool)->medium());
  REQUIRE((*pool)->allocator().allocate(std::uint64_t{8} << 20, persister).ok());  // a segment
  const PersistCounters before = (*pool)->medium().counters();
  for (int i = 0; i < 2048; ++i) REQUIRE((*pool)->allocator().allocate(4096, persister).ok());
  const PersistCounters after = (*pool)->medium().counters();
  CHECK(after.fences - before.fences == 1);  // 8 MB in a step of 8 MB
  CHECK(after.lines_flushed - before.lines_flushed == 1);
}

TEST_CASE("kOutOfSpace gives the wanted and the free size", "[pmem][extent]") {
  const PoolBuffer buffer(131072);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  for (const std::uint64_t bytes : {std::uint64_t{131072}, ~std::uint64_t{0}}) {
    const auto extent = allocator.allocate(bytes, persister);
    CHECK(extent.code() == StatusCode::kOutOfSpace);
    CHECK(extent.status().message().find(std::to_string(bytes)) != std::string_view::npos);
  }
  CHECK(allocator.allocate(0, persister).code() == StatusCode::kInvalidArgument);
  const auto all = allocator.allocate(131072 - 2 * 4096, persister);
  CHECK(all.ok());  // larger than a segment
  check_balance(allocator);
}

TEST_CASE("what is pledged is for reclaiming only, and refusals are counted", "[pmem][extent]") {
  const PoolBuffer buffer(262144);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  const std::uint64_t left = allocator.space().left_bytes();
  allocator.pledge(65536);
  CHECK(allocator.space().reserve_bytes == 65536);
  CHECK(allocator.space().left_bytes() == left - 65536);
  CHECK(allocator.space().refusals == 0);
  while (allocator.allocate(4096, persister).ok()) {
  }
  CHECK(allocator.space().refusals == 1);
  CHECK(allocator.space().left_bytes() < 4096);
  const Result<Extent> reclaiming = allocator.allocate(32768, persister, Purpose::kReclaim);
  REQUIRE(reclaiming.ok());
  allocator.end_pledge(32768);
  CHECK(allocator.allocate(4096, persister).code() == StatusCode::kOutOfSpace);
  allocator.end_pledge(32768);
  CHECK(allocator.allocate(4096, persister).ok());
  CHECK(allocator.space().refusals == 2);
  check_balance(allocator);
  persister.fence("extent-zero/1");
}

TEST_CASE("small free pieces are no part of what is kept for deletions", "[pmem][extent]") {
  const PoolBuffer buffer(524288);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  const Result<Extent> large = allocator.allocate(6 * Reserve::kStepBytes, persister);
  REQUIRE(large.ok());
  std::vector<Extent> small;
  for (;;) {
    const Result<Extent> extent = allocator.allocate(4096, persister);
    if (!extent.ok()) break;
    small.push_back(*extent);
  }
  allocator.release(*large);
  for (std::size_t i = 0; i < small.size(); i += 2) allocator.release(small[i]);
  REQUIRE(allocator.free_bytes() > 10 * Reserve::kStepBytes);
  allocator.pledge(4 * Reserve::kStepBytes);
  CHECK(allocator.allocate(2 * Reserve::kStepBytes, persister).ok());
  CHECK(allocator.allocate(Reserve::kStepBytes, persister).code() == StatusCode::kOutOfSpace);
  for (int i = 0; i < 4; ++i)
    CHECK(allocator.allocate(Reserve::kStepBytes, persister, Purpose::kReclaim).ok());
  check_balance(allocator);
  persister.fence("extent-zero/1");
}

TEST_CASE("merges leave the part of a reserve that deletions need", "[pmem][extent]") {
  const PoolBuffer buffer(262144);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  allocator.keep_reserve({.bytes = 49152, .merging = 32768, .piece = 32768});
  allocator.pledge(8192);
  while (allocator.allocate(4096, persister).ok()) {
  }
  const std::uint64_t refusals = allocator.space().refusals;
  std::uint64_t merged = 0;
  while (allocator.allocate(4096, persister, Purpose::kMerge).ok()) merged += 4096;
  CHECK(merged >= 32768);
  CHECK(allocator.space().left_bytes() == 0);
  CHECK(allocator.space().refusals == refusals);
  std::uint64_t deleted = 0;
  while (allocator.allocate(4096, persister, Purpose::kReclaim).ok()) deleted += 4096;
  CHECK(deleted >= 49152 - 32768 + 8192);
  check_balance(allocator);
  persister.fence("extent-zero/1");
}

TEST_CASE("a reserve is for reclaiming only, and stays in one piece", "[pmem][extent]") {
  const PoolBuffer buffer(262144);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  allocator.keep_reserve({.bytes = 65536, .merging = 32768, .piece = 32768});
  CHECK(allocator.space().reserve_bytes == 65536);
  std::vector<Extent> taken;
  Status refused;
  while (refused.ok()) {
    const Result<Extent> extent = allocator.allocate(1024, persister);
    refused = extent.status();
    if (extent.ok()) taken.push_back(*extent);
  }
  CHECK(refused.code() == StatusCode::kOutOfSpace);
  CHECK(std::string(refused.message()).find("kept for deletions and merges") != std::string::npos);
  CHECK(allocator.space().left_bytes() < 1024);
  check_balance(allocator);
  // Half of what comes back may be taken again, but never the last large piece.
  const Result<Extent> large = allocator.allocate(32768, persister, Purpose::kReclaim);
  REQUIRE(large.ok());
  for (std::size_t i = 0; i < taken.size(); i += 2) allocator.release(taken[i]);
  CHECK(allocator.space().left_bytes() > 0);
  CHECK(allocator.space().largest_piece >= 32768);  // what was left beside `large`
  while (allocator.allocate(1024, persister).ok()) {
  }
  CHECK(allocator.space().largest_piece >= 32768);
  allocator.release(*large);
  CHECK(allocator.allocate(1024, persister).ok());
  check_balance(allocator);
  persister.fence("extent-zero/1");
}

TEST_CASE("new data may borrow half of what merges have, until much is free", "[pmem][extent]") {
  const PoolBuffer buffer(524288);
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  allocator.keep_reserve({.bytes = 98304, .merging = 65536, .piece = 32768});
  allocator.pledge(16384);
  std::vector<Extent> taken;
  const auto take_all = [&] {
    std::uint64_t bytes = 0;
    for (;;) {
      const Result<Extent> extent = allocator.allocate(4096, persister);
      if (!extent.ok()) return bytes;
      taken.push_back(*extent);
      bytes += extent->bytes;
    }
  };
  const std::uint64_t at_first = take_all();
  CHECK(allocator.space().reserve_bytes == 98304 + 16384);
  CHECK(take_all() == 0);
  allocator.lend_reserve();
  CHECK(allocator.space().reserve_bytes == 65536 + 16384);
  const std::uint64_t borrowed = take_all();
  CHECK(borrowed >= 16384);
  CHECK(borrowed <= 32768);
  allocator.lend_reserve();
  CHECK(take_all() == 0);
  CHECK(allocator.space().largest_piece >= 32768);
  // What merges and deletions need is there.
  const Result<Extent> merged = allocator.allocate(32768, persister, Purpose::kMerge);
  REQUIRE(merged.ok());
  CHECK(allocator.allocate(4096, persister, Purpose::kMerge).code() == StatusCode::kOutOfSpace);
  CHECK(allocator.allocate(16384, persister, Purpose::kReclaim).ok());
  allocator.release(*merged);
  // Little comes back: the loan goes on. Much: it ends.
  allocator.release(taken.back());
  taken.pop_back();
  CHECK(allocator.space().reserve_bytes == 65536 + 16384);
  REQUIRE(at_first >= 262144);
  for (const Extent& extent : taken) allocator.release(extent);
  CHECK(allocator.space().reserve_bytes == 98304 + 16384);
  check_balance(allocator);
  persister.fence("extent-zero/1");
}

TEST_CASE("claims are checked", "[pmem][extent]") {
  const PoolBuffer buffer(131072);
  Extent owned;
  {
    auto pool = Pool::create_in_memory(buffer.span(), small_options());
    Persister persister((*pool)->medium());
    owned = *(*pool)->allocator().allocate(2048, persister);
  }
  auto pool = Pool::open_in_memory(buffer.span(), {});
  REQUIRE(pool.ok());
  ExtentAllocator& allocator = (*pool)->allocator();
  Persister persister((*pool)->medium());
  CHECK(allocator.allocate(256, persister).code() == StatusCode::kBusy);
  const auto refused = [&](Extent extent, const char* word) {
    const Status status = allocator.claim(extent, "table t, column c");
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find("table t, column c") != std::string_view::npos);
    CHECK(status.message().find(word) != std::string_view::npos);
  };
  refused({owned.offset + 8, 256}, "multiple");
  refused({owned.offset, 0}, "multiple");
  refused({0, 256}, "outside");
  refused({131072, 256}, "outside");
  refused({owned.offset, std::uint64_t{1} << 40}, "outside");
  refused({owned.offset, ~std::uint64_t{255}}, "outside");
  refused({~std::uint64_t{255}, 512}, "outside");
  refused({owned.offset + 8192, 256}, "never handed out");
  CHECK(allocator.claim({owned.offset, 1000}, "a").ok());  // an owner need not know the unit
  refused({owned.offset, 1024}, "overlaps");
  refused({owned.offset + 512, 1024}, "overlaps");
  CHECK(allocator.claim({owned.offset + 1024, 1024}, "b").ok());
  CHECK(allocator.space().used_bytes == 2048);
  check_balance(allocator);
  allocator.finish_claims();
  const auto extent = allocator.allocate(256, persister);
  REQUIRE(extent.ok());
  CHECK(extent->offset >= owned.offset + 2048);
  persister.fence("test/1");
}

TEST_CASE("the allocator agrees with a map of extents, over many openings",
          "[pmem][extent][model]") {
  const PoolBuffer buffer(262144);
  std::mt19937_64 random(GENERATE(1U, 2U, 3U));
  std::map<std::uint64_t, std::pair<std::uint64_t, std::byte>> owned;  // offset: bytes, filling
  auto pool = Pool::create_in_memory(buffer.span(), small_options());
  for (int round = 0; round < 40; ++round) {
    ExtentAllocator& allocator = (*pool)->allocator();
    std::byte* const base = (*pool)->base();
    {
      Persister persister((*pool)->medium());
      for (int step = 0; step < 500; ++step) {
        if (random() % 2 == 0 || owned.empty()) {
          const auto extent = allocator.allocate(1 + random() % 6000, persister);
          if (!extent.ok()) {
            REQUIRE(extent.code() == StatusCode::kOutOfSpace);
            continue;
          }
          std::byte* const bytes = base + extent->offset;
          REQUIRE(is_filled_with(std::byte{0}, bytes, extent->bytes));
          const auto next = owned.lower_bound(extent->offset);
          REQUIRE((next == owned.end() || extent->offset + extent->bytes <= next->first));
          REQUIRE((next == owned.begin() ||
                   std::prev(next)->first + std::prev(next)->second.first <= extent->offset));
          const auto filling = static_cast<std::byte>(1 + random() % 255);
          std::memset(bytes, static_cast<int>(filling), extent->bytes);
          owned[extent->offset] = {extent->bytes, filling};
        } else {
          auto victim = owned.lower_bound(random() % buffer.span().size());
          if (victim == owned.end()) victim = owned.begin();
          const std::byte* const bytes = base + victim->first;
          REQUIRE(is_filled_with(victim->second.second, bytes, victim->second.first));
          allocator.release({victim->first, victim->second.first});
          owned.erase(victim);
        }
      }
      check_balance(allocator);
      persister.fence("test/1");
    }
    pool->reset();
    pool = Pool::open_in_memory(buffer.span(), {});
    REQUIRE(pool.ok());
    std::uint64_t used = 0;
    for (const auto& [offset, extent] : owned) {
      REQUIRE((*pool)->allocator().claim({offset, extent.first}, "model").ok());
      used += extent.first;
    }
    (*pool)->allocator().finish_claims();
    REQUIRE((*pool)->allocator().space().used_bytes == used);
  }
}

TEST_CASE("many threads allocate and release at once", "[pmem][extent][concurrency]") {
  const TemporaryPath path;
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{64} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, std::uint64_t{4} << 20);
  auto pool = Pool::create(options);
  REQUIRE(pool.ok());
  constexpr int kThreads = 4;
  std::vector<int> wrong(kThreads, 0);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Pool& p = **pool;
      Persister persister(p.medium());
      std::mt19937_64 random(static_cast<unsigned>(t));
      std::vector<Extent> mine;
      const auto filling = static_cast<std::byte>(t + 1);
      for (int step = 0; step < 1500; ++step) {
        if (random() % 3 != 0 || mine.empty()) {
          const auto extent = p.allocator().allocate(1 + random() % 20000, persister);
          persister.fence("test/1");
          if (!extent.ok()) continue;
          std::byte* const bytes = p.base() + extent->offset;
          if (!is_filled_with(std::byte{0}, bytes, extent->bytes)) ++wrong[t];
          std::memset(bytes, static_cast<int>(filling), extent->bytes);
          mine.push_back(*extent);
        } else {
          const std::byte* const bytes = p.base() + mine.back().offset;
          if (!is_filled_with(filling, bytes, mine.back().bytes)) ++wrong[t];
          p.allocator().release(mine.back());
          mine.pop_back();
        }
      }
      for (const Extent& extent : mine) p.allocator().release(extent);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(std::count(wrong.begin(), wrong.end(), 0) == kThreads);
  CHECK((*pool)->allocator().space().used_bytes == 0);
  check_balance((*pool)->allocator());
}

}  // namespace
}  // namespace flugs::pmem
