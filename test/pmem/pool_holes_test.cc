// Free space goes back to the file system, and is taken again. Its crash states are in
// allocation_crash_test.cc.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "pmem/kinds/pool_image.h"
#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/filled_with.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

using test::is_filled_with;
using test::PoolBuffer;
using test::TemporaryPath;

constexpr std::uint64_t kMB = std::uint64_t{1} << 20;

PoolOptions holey_options(const std::string& path) {
  PoolOptions options;
  options.path = path;
  options.max_bytes = 256 * kMB;
  options.segment_bytes = 2 * kMB;
  options.grow_ahead_bytes = 0;
  return options;
}

std::uint64_t bytes_on_medium(const std::string& path) {
  struct stat info{};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

/// Extents of a megabyte, each filled with a number of its own.
struct Megabytes {
  std::vector<Extent> extents;

  Status add(Pool& pool, std::size_t count) {
    Persister persister(pool.medium());
    for (std::size_t i = 0; i < count; ++i) {
      const Result<Extent> extent = pool.allocator().allocate(kMB, persister);
      persister.fence("test/1");
      if (!extent.ok()) return extent.status();
      const std::byte* bytes = pool.base() + extent->offset;
      if (!is_filled_with(std::byte{0}, bytes, kMB))
        return Status(StatusCode::kCorrupt, "an extent is not zero");
      extents.push_back(*extent);
      std::memset(pool.base() + extent->offset, number(*extent), kMB);
      persister.persist(pool.base() + extent->offset, kMB, "test/2");
    }
    return {};
  }
  static int number(Extent extent) { return static_cast<int>(extent.offset / kMB % 250) + 1; }
  /// Releases all but each `kept`-th.
  void release(Pool& pool, std::size_t kept) {
    std::vector<Extent> left;
    for (std::size_t i = 0; i < extents.size(); ++i)
      if (i % kept == 0)
        left.push_back(extents[i]);
      else
        pool.allocator().release(extents[i]);
    extents = left;
  }
  void check(Pool& pool, bool claims = false) const {
    for (const Extent& extent : extents) {
      if (claims) REQUIRE(pool.allocator().claim(extent, "test").ok());
      const std::byte* bytes = pool.base() + extent.offset;
      REQUIRE(is_filled_with(static_cast<std::byte>(number(extent)), bytes, kMB));
    }
    const SpaceReport space = pool.allocator().space();
    if (!claims)
      CHECK(space.used_bytes + pool.allocator().free_bytes() + space.overhead_bytes ==
            space.allocated_bytes);
  }
};

std::unique_ptr<Pool> must_open(Result<std::unique_ptr<Pool>> pool) {
  INFO(pool.status().to_string());
  REQUIRE(pool.ok());
  return std::move(pool).value();
}

TEST_CASE("free space goes back to the file system, and is taken again", "[pmem][holes]") {
  const TemporaryPath path(GENERATE("/dev/shm", "/var/tmp"));
  PoolOptions options = holey_options(path.string());
  Megabytes data;
  std::uint64_t small = 0;
  {
    const auto pool = must_open(Pool::create(options));
    REQUIRE(data.add(*pool, 160).ok());
    const std::uint64_t full = bytes_on_medium(path.string());
    CHECK(full > 160 * kMB);
    data.release(*pool, 10);
    pool->allocator().give_back(Slack::kSome);
    small = bytes_on_medium(path.string());
    CHECK(small < 32 * kMB);
    data.check(*pool);
    CHECK(pool->allocator().space().hole_bytes > 130 * kMB);
    REQUIRE(data.add(*pool, 40).ok());
    data.check(*pool);
    CHECK(bytes_on_medium(path.string()) > 40 * kMB);
    CHECK(pool->allocator().space().allocated_bytes < 80 * kMB);
    data.release(*pool, 4);
    pool->allocator().give_back(Slack::kNone);
    CHECK(bytes_on_medium(path.string()) < 24 * kMB);
    data.check(*pool);
    small = bytes_on_medium(path.string());
  }
  std::vector<ImageFinding> findings;
  REQUIRE(PoolImage::of_file(path.string(), findings).ok());
  for (const ImageFinding& finding : findings) CHECK(finding.status.ok());
  const auto pool = must_open(Pool::open(options));
  CHECK(bytes_on_medium(path.string()) < small + kMB);
  data.check(*pool, true);
  pool->allocator().finish_claims();
  data.check(*pool);
  REQUIRE(data.add(*pool, 220).ok());  // all holes, and more
  data.check(*pool);
}

TEST_CASE("an extent that must lie far to the front finds its place in a hole", "[pmem][holes]") {
  const TemporaryPath path(GENERATE("/dev/shm", "/var/tmp"));
  PoolOptions options = holey_options(path.string());
  Megabytes data;
  {
    const auto pool = must_open(Pool::create(options));
    REQUIRE(data.add(*pool, 64).ok());
    data.release(*pool, 8);
    pool->allocator().give_back(Slack::kNone);
    const SpaceReport before = pool->allocator().space();
    REQUIRE(before.hole_bytes > 40 * kMB);
    CHECK(before.largest_piece >= 7 * kMB);
    Persister persister(pool->medium());
    const std::uint64_t last = data.extents.back().offset;
    const Result<Extent> moved = pool->allocator().allocate_below(kMB, last, persister);
    REQUIRE(moved.ok());
    CHECK(moved->offset < data.extents[1].offset);
    CHECK(pool->allocator().space().hole_bytes <= before.hole_bytes - kMB);
    std::memset(pool->base() + moved->offset, Megabytes::number(*moved), kMB);
    persister.persist(pool->base() + moved->offset, kMB, "test/2");
    data.extents.push_back(*moved);
    data.check(*pool);
    // Free space that lies before all holes is taken first.
    pool->allocator().release(*moved);
    data.extents.pop_back();
    const Result<Extent> free = pool->allocator().allocate_below(kMB, last, persister);
    REQUIRE(free.ok());
    CHECK(free->offset == moved->offset);
    std::memset(pool->base() + free->offset, Megabytes::number(*free), kMB);
    persister.persist(pool->base() + free->offset, kMB, "test/2");
    data.extents.push_back(*free);
    CHECK(pool->allocator().allocate_below(kMB, data.extents[0].offset, persister).code() ==
          StatusCode::kOutOfSpace);
  }
  const auto pool = must_open(Pool::open(options));
  data.check(*pool, true);
  pool->allocator().finish_claims();
  data.check(*pool);
}

TEST_CASE("what a pool says is left can be allocated", "[pmem][holes]") {
  const TemporaryPath path;
  PoolOptions options = holey_options(path.string());
  options.max_bytes = 12 * kMB;
  const auto pool = must_open(Pool::create(options));
  Persister persister(pool->medium());
  while (pool->allocator().allocate(4096, persister).ok()) {
  }
  persister.fence("extent-zero/1");
  CHECK(pool->allocator().space().left_bytes() == 0);
  REQUIRE(pool->grow(14 * kMB).ok());
  const std::uint64_t left = pool->allocator().space().left_bytes();
  CHECK(left >= 2 * kMB);
  std::uint64_t taken = 0;
  while (pool->allocator().allocate(4096, persister).ok()) taken += 4096;
  CHECK(taken == left);
  persister.fence("extent-zero/1");
}

TEST_CASE("a full pool uses its holes up to the last page", "[pmem][holes]") {
  const TemporaryPath path;
  PoolOptions options = holey_options(path.string());
  options.max_bytes = 64 * kMB;
  const auto pool = must_open(Pool::create(options));
  Megabytes data;
  CHECK(data.add(*pool, 100).code() == StatusCode::kOutOfSpace);
  const std::size_t most = data.extents.size();
  for (int round = 0; round < 3; ++round) {
    data.release(*pool, 5);
    pool->allocator().give_back(round == 0 ? Slack::kSome : Slack::kNone);
    data.check(*pool);
    CHECK(data.add(*pool, 100).code() == StatusCode::kOutOfSpace);
    CHECK(data.extents.size() == most);
    data.check(*pool);
  }
  // A piece of which a part is a hole, and a part is not.
  for (const Extent& extent : data.extents) pool->allocator().release(extent);
  data.extents.clear();
  pool->allocator().give_back(Slack::kNone);
  Persister persister(pool->medium());
  CHECK(pool->allocator().allocate((most - 1) * kMB, persister).ok());
  persister.fence("test/1");
}

TEST_CASE("a sparse copy of a pool with holes gets all of its space back", "[pmem][holes]") {
  const TemporaryPath path;
  const TemporaryPath copy;
  PoolOptions options = holey_options(path.string());
  Megabytes data;
  {
    const auto pool = must_open(Pool::create(options));
    REQUIRE(data.add(*pool, 60).ok());
    // Zeros in space that is in use: the copy loses them.
    std::memset(pool->base() + data.extents[0].offset, 0, kMB);
    Persister persister(pool->medium());
    persister.persist(pool->base() + data.extents[0].offset, kMB, "test/1");
    data.release(*pool, 4);
    pool->allocator().give_back(Slack::kNone);
  }
  const std::string command = "cp --sparse=always " + path.string() + " " + copy.string();
  REQUIRE(std::system(command.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
  REQUIRE(bytes_on_medium(copy.string()) < bytes_on_medium(path.string()));
  options.path = copy.string();
  const auto pool = must_open(Pool::open(options));
  CHECK(bytes_on_medium(copy.string()) > 60 * kMB);
  CHECK(pool->allocator().space().hole_bytes == 0);
  for (const Extent& extent : data.extents) REQUIRE(pool->allocator().claim(extent, "test").ok());
  pool->allocator().finish_claims();
  pool->allocator().give_back(Slack::kNone);
  CHECK(bytes_on_medium(copy.string()) < 24 * kMB);
}

TEST_CASE("holes of a pool in memory read zero, and space moves on", "[pmem][holes]") {
  PoolOptions options = holey_options("");
  options.max_bytes = 64 * kMB;
  const auto pool = must_open(Pool::create_in_own_memory(options));
  Megabytes data;
  for (int round = 0; round < 4; ++round) {
    REQUIRE(data.add(*pool, 30).ok());
    data.check(*pool);
    data.release(*pool, 3);
    pool->allocator().give_back(round % 2 == 0 ? Slack::kNone : Slack::kSome);
    data.check(*pool);
  }
}

TEST_CASE("threads allocate and release while space goes back", "[pmem][holes]") {
  const TemporaryPath path;
  PoolOptions options = holey_options(path.string());
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, 4 * kMB);
  const auto pool = must_open(Pool::create(options));
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      Megabytes data;
      while (!is_over) {
        if (!data.add(*pool, 6).ok()) ++wrong;
        for (const Extent& extent : data.extents)
          if (pool->base()[extent.offset + 4711] !=
              static_cast<std::byte>(Megabytes::number(extent)))
            ++wrong;
        data.release(*pool, 7);
      }
    });
  for (int i = 0; i < 100; ++i) pool->allocator().give_back(Slack::kNone);
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a full medium refuses to fill holes, and later does", "[pmem][holes]") {
  const TemporaryPath disk("/dev/shm");
  ::mkdir(disk.string().c_str(), 0700);
  if (::mount("flugs-test", disk.string().c_str(), "tmpfs", 0, "size=48m") != 0) {
    ::rmdir(disk.string().c_str());
    WARN("cannot mount: skipped");
    return;
  }
  {
    const auto pool = must_open(Pool::create(holey_options(disk.string() + "/pool")));
    Megabytes data;
    REQUIRE(data.add(*pool, 30).ok());
    data.release(*pool, 3);
    pool->allocator().give_back(Slack::kNone);
    {
      std::ofstream other(disk.string() + "/other");
      for (int i = 0; i < 40; ++i) other << std::string(kMB, 'x') << std::flush;
    }
    const Status refused = data.add(*pool, 30);
    INFO(refused.to_string());
    CHECK(refused.code() == StatusCode::kOutOfSpace);
    CHECK(refused.message().find("No space left") != std::string_view::npos);
    CHECK(refused.message().find("writes go on without reopening") != std::string_view::npos);
    CHECK(is_lack_of_bytes(refused));
    data.check(*pool);
    ::unlink((disk.string() + "/other").c_str());
    const std::size_t before = data.extents.size();
    REQUIRE(data.add(*pool, 20).ok());
    CHECK(data.extents.size() == before + 20);
    data.check(*pool);
  }
  ::umount2(disk.string().c_str(), MNT_DETACH);
  ::rmdir(disk.string().c_str());
}

}  // namespace
}  // namespace flugs::pmem
