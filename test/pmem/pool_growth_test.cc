// The largest size of a pool grows: while the pool is open, while it is opened, and not at all. Its
// crash states are in allocation_crash_test.cc.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
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

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

PoolOptions growing_options(const TemporaryPath& path) {
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = 32 * kMiB;
  options.segment_bytes = kMiB;
  options.grow_ahead_bytes = 0;
  return options;
}

std::unique_ptr<Pool> must_pool(Result<std::unique_ptr<Pool>> pool) {
  INFO(pool.status().to_string());
  REQUIRE(pool.ok());
  return std::move(pool).value();
}

void check_says(const Status& status, StatusCode code, std::initializer_list<std::string> words) {
  INFO(status.to_string());
  CHECK(status.code() == code);
  for (const std::string& word : words)
    CHECK(status.message().find(word) != std::string_view::npos);
}

/// Takes megabytes until there is none, and fills each with its number. Returns why there is none.
Status fill(Pool& pool, std::vector<Extent>& extents) {
  Persister persister(pool.medium());
  for (;;) {
    const Result<Extent> extent = pool.allocator().allocate(kMiB, persister);
    persister.fence("test/1");
    if (!extent.ok()) return extent.status();
    extents.push_back(*extent);
    std::memset(pool.base() + extent->offset, static_cast<int>(extents.size()), kMiB);
    persister.persist(pool.base() + extent->offset, kMiB, "test/2");
  }
}

void check_filled(Pool& pool, const std::vector<Extent>& extents, bool claims) {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (claims) REQUIRE(pool.allocator().claim(extents[i], "test").ok());
    const std::byte* bytes = pool.base() + extents[i].offset;
    REQUIRE(is_filled_with(static_cast<std::byte>(i + 1), bytes, kMiB));
  }
}

void check_audit(const std::string& path) {
  std::vector<ImageFinding> findings;
  REQUIRE(PoolImage::of_file(path, findings).ok());
  for (const ImageFinding& finding : findings) {
    INFO(finding.part << ": " << finding.status.to_string());
    CHECK(finding.status.ok());
  }
}

std::uint64_t size_of(const std::string& path) {
  struct stat info{};
  REQUIRE(stat(path.c_str(), &info) == 0);
  return static_cast<std::uint64_t>(info.st_size);
}

TEST_CASE("an open pool grows beyond its size, again and again, and moves nothing",
          "[pmem][growth]") {
  const TemporaryPath path(GENERATE("/dev/shm", "/var/tmp"));
  PoolOptions options = growing_options(path);
  std::vector<Extent> extents;
  {
    const auto pool = must_pool(Pool::create(options));
    std::byte* const base = pool->base();
    for (std::uint64_t bytes = options.max_bytes; bytes <= 96 * kMiB; bytes += 32 * kMiB) {
      REQUIRE(pool->grow(bytes).to_string() == "ok");
      check_says(fill(*pool, extents), StatusCode::kOutOfSpace,
                 {std::to_string(bytes), "Database::grow", "flugs pool grow"});
      CHECK(pool->medium().bytes() == bytes);
      CHECK(pool->allocator().space().reserved_bytes == bytes);
      CHECK(extents.size() * kMiB > bytes - 6 * kMiB);
      CHECK(size_of(path.string()) == bytes);
    }
    CHECK(pool->base() == base);
    check_filled(*pool, extents, false);
  }
  check_audit(path.string());
  options.max_bytes = 0;
  const auto pool = must_pool(Pool::open(options));
  CHECK(pool->medium().bytes() == 96 * kMiB);
  check_filled(*pool, extents, true);
  pool->allocator().finish_claims();
  check_says(fill(*pool, extents), StatusCode::kOutOfSpace, {std::to_string(96 * kMiB)});
}

TEST_CASE("opening gives a pool the size that it is asked for", "[pmem][growth]") {
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  std::vector<Extent> extents;
  {
    const auto pool = must_pool(Pool::create(options));
    REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  }
  options.max_bytes = 64 * kMiB;
  {
    const auto pool = must_pool(Pool::open(options));
    CHECK(pool->medium().bytes() == options.max_bytes);
    check_filled(*pool, extents, true);
    pool->allocator().finish_claims();
    REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
    CHECK(extents.size() > 56);
  }
  check_audit(path.string());
  CHECK(must_pool(Pool::open(options))->medium().bytes() == options.max_bytes);
  ++options.max_bytes;  // rounded down
  CHECK(must_pool(Pool::open(options))->medium().bytes() == 64 * kMiB);
  CHECK(must_pool(Pool::open_to_read(options))->medium().bytes() == 64 * kMiB);
  options.max_bytes = 48 * kMiB;
  check_says(Pool::open(options).status(), StatusCode::kInvalidArgument,
             {std::to_string(48 * kMiB), std::to_string(64 * kMiB), "never gets smaller"});
  options.max_bytes = kPoolBytesMax + 4096;
  check_says(Pool::open(options).status(), StatusCode::kInvalidArgument,
             {std::to_string(kPoolBytesMax + 4096), std::to_string(kPoolBytesMax),
              std::to_string(64 * kMiB)});
  options.max_bytes = 128 * kMiB;
  check_says(Pool::open_to_read(options).status(), StatusCode::kReadOnly,
             {std::to_string(128 * kMiB), std::to_string(64 * kMiB), "reading only"});
  CHECK(size_of(path.string()) == 64 * kMiB);
}

TEST_CASE("a pool that is open does not grow beyond its address space; opening it does",
          "[pmem][growth]") {
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  struct rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  // With a limit, however large, no address space is kept for later.
  const struct rlimit limited{std::uint64_t{1} << 46, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  auto pool = Pool::create(options);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE(pool.ok());
  check_says((*pool)->grow(64 * kMiB), StatusCode::kInvalidArgument,
             {std::to_string(64 * kMiB), std::to_string(32 * kMiB), "close the database"});
  CHECK((*pool)->medium().bytes() == 32 * kMiB);
  pool->reset();
  options.max_bytes = 64 * kMiB;
  CHECK(must_pool(Pool::open(options))->medium().bytes() == 64 * kMiB);
}

TEST_CASE("a limit for files refuses growth, and ends no process", "[pmem][growth]") {
  const TemporaryPath path;
  const auto pool = must_pool(Pool::create(growing_options(path)));
  struct rlimit before{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &before) == 0);
  const struct rlimit limited{48 * kMiB, before.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limited) == 0);
  const Status refused = pool->grow(64 * kMiB);
  REQUIRE(setrlimit(RLIMIT_FSIZE, &before) == 0);
  check_says(refused, StatusCode::kOutOfSpace,
             {std::to_string(64 * kMiB), std::to_string(48 * kMiB)});
  CHECK(pool->medium().bytes() == 32 * kMiB);
  CHECK(pool->grow(64 * kMiB).ok());
}

TEST_CASE("growth that was cut short leaves a longer file, which opens as before",
          "[pmem][growth]") {
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  std::vector<Extent> extents;
  {
    const auto pool = must_pool(Pool::create(options));
    REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  }
  REQUIRE(truncate(path.string().c_str(), 80 * kMiB) == 0);
  options.max_bytes = 0;
  {
    const auto pool = must_pool(Pool::open(options));
    CHECK(pool->medium().bytes() == 32 * kMiB);
    check_filled(*pool, extents, true);
    pool->allocator().finish_claims();
    CHECK(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
    REQUIRE(pool->grow(64 * kMiB).ok());  // less than the file has
    REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  }
  CHECK(size_of(path.string()) == 64 * kMiB);
  check_audit(path.string());
  CHECK(must_pool(Pool::open_to_read(options))->medium().bytes() == 64 * kMiB);
}

TEST_CASE("pools of every size around a zone of libpmemobj grow", "[pmem][growth]") {
  constexpr std::uint64_t kChunks = 65528;
  constexpr std::uint64_t kSecondZone = 8192 + 1024 * 3072 + 1024 + 64 + kChunks * (8 + 262144);
  const std::uint64_t more =
      GENERATE(0UL, 4096UL, 524288UL, 786432UL - 4096, 786432UL, 786432UL + 4096, 2097152UL);
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  options.max_bytes = kSecondZone + more;
  INFO("max_bytes " << options.max_bytes);
  {
    const auto pool = must_pool(Pool::create(options));
    const std::uint64_t grown = 3 * kSecondZone;
    REQUIRE(pool->grow(grown).ok());
  }
  check_audit(path.string());
  options.max_bytes = 0;
  CHECK(must_pool(Pool::open(options))->medium().bytes() == 3 * kSecondZone / 4096 * 4096);
}

TEST_CASE("a forked child cannot reach what an open pool has grown by", "[pmem][growth]") {
  const TemporaryPath path;
  const auto pool = must_pool(Pool::create(growing_options(path)));
  REQUIRE(pool->grow(64 * kMiB).ok());
  std::vector<Extent> extents;
  REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  const pid_t child = fork();
  if (child == 0) {
    const int zero = open("/dev/zero", O_RDONLY);
    const bool is_writable = read(zero, pool->base() + extents.back().offset, 1) == 1;
    const bool is_zero = pool->base()[extents.back().offset] == std::byte{0};
    _exit(is_writable || !is_zero ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("space is kept ready again in a pool that was full and has grown", "[pmem][growth]") {
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  options.grow_ahead_bytes = 4 * kMiB;
  const auto pool = must_pool(Pool::create(options));
  std::vector<Extent> extents;
  REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  REQUIRE(pool->grow(64 * kMiB).ok());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (pool->allocator().free_bytes() < options.grow_ahead_bytes &&
         std::chrono::steady_clock::now() < deadline)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(pool->allocator().free_bytes() >= options.grow_ahead_bytes);
}

TEST_CASE("threads allocate while the pool grows", "[pmem][growth]") {
  const TemporaryPath path;
  PoolOptions options = growing_options(path);
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, 2 * kMiB);
  const auto pool = must_pool(Pool::create(options));
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      Persister persister(pool->medium());
      while (!is_over) {
        const Result<Extent> extent = pool->allocator().allocate(256 << 10, persister);
        persister.fence("test/1");
        if (!extent.ok()) {
          if (extent.code() != StatusCode::kOutOfSpace) ++wrong;
          std::this_thread::yield();
          continue;
        }
        if (extent->offset + extent->bytes > pool->medium().bytes()) ++wrong;
        pool->base()[extent->offset] = std::byte{1};
        persister.persist(pool->base() + extent->offset, 1, "test/2");
      }
    });
  for (std::uint64_t bytes = 33 * kMiB; bytes <= 160 * kMiB; bytes += kMiB)
    if (!pool->grow(bytes).ok()) ++wrong;
  is_over = true;
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  CHECK(pool->medium().bytes() == 160 * kMiB);
}

TEST_CASE("a pool in a buffer grows up to the buffer, one in memory of its own beyond",
          "[pmem][growth]") {
  PoolOptions options;
  options.segment_bytes = kMiB;
  options.max_bytes = 8 * kMiB;
  {
    const PoolBuffer buffer(16 * kMiB);
    std::vector<Extent> extents;
    {
      const auto pool = must_pool(Pool::create_in_memory(buffer.span(), options));
      CHECK(pool->medium().bytes() == 8 * kMiB);
      REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
      CHECK(extents.size() == 7);
      REQUIRE(pool->grow(16 * kMiB).ok());
      REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
      CHECK(extents.size() == 15);
      check_says(pool->grow(32 * kMiB), StatusCode::kInvalidArgument,
                 {std::to_string(32 * kMiB), std::to_string(16 * kMiB), "buffer"});
    }
    const auto pool = must_pool(Pool::open_in_memory(buffer.span(), {}));
    check_filled(*pool, extents, true);
  }
  const auto pool = must_pool(Pool::create_in_own_memory(options));
  std::vector<Extent> extents;
  REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  REQUIRE(pool->grow(64 * kMiB).ok());
  REQUIRE(fill(*pool, extents).code() == StatusCode::kOutOfSpace);
  CHECK(extents.size() == 63);
  check_filled(*pool, extents, false);
}

/// Notes which copy of the header has been flushed at each fence of header-repair, and whether the
/// other one has its bytes by then.
class RepairSteps final : public PersistObserver {
 public:
  explicit RepairSteps(const PoolRoot& root) : root_(root) {}
  void on_flush(const void* address, std::size_t, Label label) override {
    if (is_repair(label)) flushed_ = address == root_.headers.data() ? 0 : 1;
  }
  void on_fence(Label label) override {
    if (is_repair(label)) steps_.emplace_back(flushed_, are_alike());
  }
  const std::vector<std::pair<int, bool>>& steps() const noexcept { return steps_; }

 private:
  static bool is_repair(Label label) noexcept {
    return std::string_view(label).starts_with("header-repair/");
  }
  bool are_alike() const noexcept {
    return std::memcmp(root_.headers.data(), &root_.headers[1], sizeof(PoolHeader)) == 0;
  }

  const PoolRoot& root_;
  int flushed_ = -1;
  std::vector<std::pair<int, bool>> steps_;
};

TEST_CASE("the header that counts is durable before the other copy is written again",
          "[pmem][growth]") {
  PoolOptions options;
  options.segment_bytes = kMiB;
  options.max_bytes = 8 * kMiB;
  const PoolBuffer buffer(16 * kMiB);
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  std::array<PoolHeader, 2> before;
  {
    const auto pool = must_pool(Pool::create_in_memory(buffer.span(), options));
    before = root.headers;
    REQUIRE(pool->grow(16 * kMiB).ok());
  }
  // As a process leaves them that is killed between steps 2 and 3 of pool-grow.
  const int older = GENERATE(0, 1);
  root.headers[static_cast<std::size_t>(older)] = before[0];
  RepairSteps steps(root);
  PoolOptions watched;
  watched.observer = &steps;
  const auto pool = must_pool(Pool::open_in_memory(buffer.span(), watched));
  CHECK(pool->medium().bytes() == 16 * kMiB);
  CHECK(steps.steps() == std::vector<std::pair<int, bool>>{{1 - older, false}, {older, true}});
}

}  // namespace
}  // namespace flugs::pmem
