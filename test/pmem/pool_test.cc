#include "pmem/pool/pool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <vector>

#include "pmem/pool/pool_format.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/filled_with.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

using test::is_filled_with;
using test::PoolBuffer;
using test::TemporaryPath;

PoolOptions options_for(const TemporaryPath& path) {
  PoolOptions options;
  options.path = path.string();
  options.grow_ahead_bytes = 0;
  options.segment_bytes = std::uint64_t{1} << 20;
  return options;
}

TEST_CASE("a pool keeps identity, root and extents over closing and opening", "[pmem][pool]") {
  const std::string directory = GENERATE("/dev/shm", "/tmp");
  const TemporaryPath path(directory);
  PoolOptions options = options_for(path);
  options.max_bytes = GENERATE(std::uint64_t{8} << 20, std::uint64_t{64} << 30);
  std::uint64_t uuid = 0;
  OffsetPtr<std::uint64_t> where{};
  {
    auto pool = Pool::create(options);
    REQUIRE(pool.status().to_string() == "ok");
    Pool& p = **pool;
    CHECK(p.medium().bytes() == options.max_bytes);
    CHECK(p.path() == path.string());
    CHECK(p.format_version() == 13);
    CHECK(reinterpret_cast<std::uintptr_t>(p.application_root()) % 64 == 0);
    CHECK(is_filled_with(std::byte{0}, p.application_root(), kApplicationRootBytes));
    uuid = p.uuid();
    Persister persister(p.medium());
    auto extent = p.allocator().allocate(100000, persister);
    REQUIRE(extent.ok());
    where = {extent->offset};
    *p.at(where) = 4711;
    persister.persist(p.at(where), 8, "test/1");
    std::memcpy(p.application_root(), &where, sizeof where);
    persister.persist(p.application_root(), sizeof where, "test/2");
    CHECK(p.offset_of(p.at(where)).offset == where.offset);
  }
  for (int round = 0; round < 3; ++round) {
    auto pool = Pool::open(options);
    REQUIRE(pool.status().to_string() == "ok");
    Pool& p = **pool;
    CHECK(p.uuid() == uuid);
    OffsetPtr<std::uint64_t> found{};
    std::memcpy(&found, p.application_root(), sizeof found);
    REQUIRE(found.offset == where.offset);
    CHECK(*p.at(found) == 4711);
    CHECK(p.allocator().claim({found.offset, 102400}, "test").ok());
    p.allocator().finish_claims();
    CHECK(p.allocator().space().used_bytes == 102400);
  }
}

TEST_CASE("pools have different identities", "[pmem][pool]") {
  const PoolBuffer a(131072);
  const PoolBuffer b(131072);
  auto first = Pool::create_in_memory(a.span(), {});
  auto second = Pool::create_in_memory(b.span(), {});
  CHECK((*first)->uuid() != (*second)->uuid());
}

TEST_CASE("the medium is detected, and its guarantee is stated", "[pmem][pool]") {
  const TemporaryPath emulated("/dev/shm");
  const TemporaryPath file("/tmp");
  const PoolBuffer memory(131072);
  setenv("PMEM_IS_PMEM_FORCE", "1", 1);  // promotes nothing
  CHECK((*Pool::create(options_for(emulated)))->medium().kind() == MediumKind::kEmulated);
  CHECK((*Pool::create(options_for(file)))->medium().kind() == MediumKind::kFile);
  CHECK((*Pool::open(options_for(file)))->medium().flush_name() == "journal");
  CHECK((*Pool::open(options_for(file)))->medium().kind() == MediumKind::kFile);
  unsetenv("PMEM_IS_PMEM_FORCE");
  setenv("FLUGS_MEDIUM", "file", 1);
  CHECK((*Pool::open(options_for(emulated)))->medium().flush_name() == "journal");
  setenv("FLUGS_MEDIUM", "dax", 1);
  CHECK((*Pool::open(options_for(emulated)))->medium().kind() == MediumKind::kEmulated);
  unsetenv("FLUGS_MEDIUM");
  CHECK((*Pool::open(options_for(emulated)))->medium().kind() == MediumKind::kEmulated);
  CHECK((*Pool::create_in_memory(memory.span(), {}))->medium().kind() == MediumKind::kMemory);
  CHECK((*Pool::create_in_memory(memory.span(), {}))->medium().flush_name() == "none");
  CHECK(facts_of(MediumKind::kEmulated).name == "emulated");
  CHECK(facts_of(MediumKind::kFile).guarantee.find("journal") != std::string_view::npos);
}

TEST_CASE("a buffer that is not aligned to a page is refused", "[pmem][pool]") {
  const PoolBuffer buffer(2 * 131072);
  const auto odd = buffer.span().subspan(64, 131072);
  const auto created = Pool::create_in_memory(odd, {});
  CHECK(created.code() == StatusCode::kInvalidArgument);
  CHECK(created.status().message().find("aligned to 4096") != std::string_view::npos);
  CHECK(Pool::open_in_memory(odd, {}).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a pool in memory of 128 KB is created and opened in place", "[pmem][pool]") {
  const PoolBuffer buffer(131072);
  std::uint64_t uuid = 0;
  {
    auto pool = Pool::create_in_memory(buffer.span(), {});
    REQUIRE(pool.ok());
    uuid = (*pool)->uuid();
    CHECK((*pool)->path() == "(memory)");
    CHECK((*pool)->allocator().free_bytes() >= 120000);
    (*pool)->application_root()[7] = std::byte{1};
  }
  const auto begin = std::chrono::steady_clock::now();
  constexpr int kRounds = 1000;
  for (int i = 0; i < kRounds; ++i) {
    auto pool = Pool::open_in_memory(buffer.span(), {});
    REQUIRE(pool.ok());
    REQUIRE((*pool)->uuid() == uuid);
    REQUIRE((*pool)->application_root()[7] == std::byte{1});
  }
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() / kRounds < 100);  // microseconds each, sanitizers included
}

TEST_CASE("a pool file is sparse, private and takes no more than it uses", "[pmem][pool]") {
  const TemporaryPath path;
  PoolOptions options = options_for(path);
  options.max_bytes = std::uint64_t{256} << 30;
  auto pool = Pool::create(options);
  REQUIRE(pool.ok());
  struct stat info{};
  REQUIRE(stat(path.string().c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(static_cast<std::uint64_t>(info.st_size) == options.max_bytes);
  CHECK((*pool)->allocator().space().overhead_bytes < 17 * (3 << 19));
  // Head and first segment, and half a megabyte of metadata for each 16 GB.
  CHECK(info.st_blocks * 512 < (4 << 20) + (1 << 20) + (17 << 19) + (1 << 20));
  CHECK((*pool)->allocator().space().reserved_bytes == options.max_bytes);
}

TEST_CASE("a pool grows by itself over segments, up to its largest size", "[pmem][pool]") {
  const TemporaryPath path(GENERATE("/dev/shm", "/tmp"));
  PoolOptions options = options_for(path);
  options.max_bytes = std::uint64_t{48} << 20;
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, std::uint64_t{8} << 20);
  constexpr std::uint64_t kExtentBytes = 1 << 20;
  std::vector<Extent> extents;
  {
    auto pool = Pool::create(options);
    REQUIRE(pool.ok());
    Pool& p = **pool;
    std::byte* const base = p.base();
    Persister persister(p.medium());
    for (;;) {
      auto extent = p.allocator().allocate(kExtentBytes, persister);
      if (!extent.ok()) {
        CHECK(extent.code() == StatusCode::kOutOfSpace);
        CHECK(extent.status().message().find("1048576 bytes wanted") != std::string_view::npos);
        break;
      }
      REQUIRE(is_filled_with(std::byte{0}, p.base() + extent->offset, kExtentBytes));
      std::memset(p.base() + extent->offset, static_cast<int>(extents.size() + 1), kExtentBytes);
      persister.persist(p.base() + extent->offset, kExtentBytes, "test/1");
      extents.push_back(*extent);
    }
    CHECK(p.base() == base);
    CHECK(extents.size() >= 43);
    const SpaceReport space = p.allocator().space();
    CHECK(space.used_bytes == extents.size() * kExtentBytes);
    CHECK(space.used_bytes + p.allocator().free_bytes() + space.overhead_bytes ==
          space.allocated_bytes);
    CHECK(space.allocated_bytes <= options.max_bytes);
  }
  auto pool = Pool::open(options);
  REQUIRE(pool.ok());
  for (std::size_t i = 0; i < extents.size(); ++i) {
    CHECK((*pool)->base()[extents[i].offset + 12345] == static_cast<std::byte>(i + 1));
    CHECK((*pool)->allocator().claim(extents[i], "test").ok());
  }
}

TEST_CASE("space ahead of need is provided and touched in the background", "[pmem][pool]") {
  const TemporaryPath path;
  PoolOptions options = options_for(path);
  options.grow_ahead_bytes = std::uint64_t{16} << 20;
  auto pool = Pool::create(options);
  REQUIRE(pool.ok());
  const auto wait_for = [&](std::uint64_t bytes) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while ((*pool)->allocator().free_bytes() < bytes &&
           std::chrono::steady_clock::now() < deadline) {
      usleep(1000);
    }
    const std::uint64_t free = (*pool)->allocator().free_bytes();
    CHECK(free >= bytes);
    CHECK(free < bytes + (std::uint64_t{4} << 20));
  };
  wait_for(std::uint64_t{4} << 20);
  // The thread keeps a quarter of the used space ready, up to the limit.
  Persister persister((*pool)->medium());
  REQUIRE((*pool)->allocator().allocate(std::uint64_t{32} << 20, persister).ok());
  wait_for(std::uint64_t{8} << 20);
  REQUIRE((*pool)->allocator().allocate(std::uint64_t{96} << 20, persister).ok());
  wait_for(options.grow_ahead_bytes);
}

TEST_CASE("a forked child cannot reach the mapping", "[pmem][pool]") {
  const TemporaryPath path;
  auto pool = Pool::create(options_for(path));
  REQUIRE(pool.ok());
  const pid_t child = fork();
  if (child == 0) {
    // A write to an unmapped page fails with EFAULT instead of killing the process.
    const int null = open("/dev/zero", O_RDONLY);
    const bool is_there = read(null, (*pool)->application_root(), 1) == 1;
    _exit(is_there ? 1 : 0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a sparse copy of a pool gets its space back when it is opened", "[pmem][pool]") {
  const TemporaryPath path;
  PoolOptions options = options_for(path);
  options.segment_bytes = std::uint64_t{4} << 20;
  {
    REQUIRE(Pool::create(options).ok());
  }
  const int fd = open(path.string().c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  struct stat made{};
  REQUIRE(fstat(fd, &made) == 0);
  // The space that creation provides holds zeros only, and ends at a multiple of 4 MB.
  REQUIRE(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 7 << 20, 1 << 20) == 0);
  struct stat sparse{};
  REQUIRE(fstat(fd, &sparse) == 0);
  REQUIRE(sparse.st_blocks < made.st_blocks);
  CHECK(Pool::open(options).ok());
  struct stat whole{};
  REQUIRE(fstat(fd, &whole) == 0);
  close(fd);
  CHECK(whole.st_blocks == made.st_blocks);
}

TEST_CASE("pools of every size around a zone of libpmemobj can be made", "[pmem][pool]") {
  // The second zone begins behind lanes, heap header and 65528 chunks of 256 KB with a word each.
  constexpr std::uint64_t kChunks = 65528;
  constexpr std::uint64_t kSecondZone = 8192 + 1024 * 3072 + 1024 + 64 + kChunks * (8 + 262144);
  const std::uint64_t more =
      GENERATE(0UL, 4096UL, 524288UL, 524288UL + 64, 786432UL - 4096, 786432UL, 786432UL + 4096,
               1048576UL, 1048576UL + 4096, 2097152UL, 17179869184UL);
  const TemporaryPath path;
  PoolOptions options = options_for(path);
  options.max_bytes = kSecondZone + more;
  INFO("max_bytes " << options.max_bytes);
  {
    const auto pool = Pool::create(options);
    REQUIRE(pool.status().to_string() == "ok");
    // Overhead: the head, and metadata of at most two more zones.
    CHECK((*pool)->allocator().space().overhead_bytes < (8 << 20));
  }
  CHECK(Pool::open(options).status().to_string() == "ok");
}

// As protocol journal-end leaves it after its step 3 in the first header alone. The checkpoints
// begin once: beginning them twice breaks an invariant.
TEST_CASE("a closing that was cut between the two headers is made up for", "[pmem][pool]") {
  const TemporaryPath path("/tmp");
  const TemporaryPath left("/tmp");
  PoolOptions options = options_for(path);
  options.max_bytes = std::uint64_t{8} << 20;
  {
    auto pool = Pool::create(options);
    REQUIRE(pool.status().to_string() == "ok");
    auto* const root = reinterpret_cast<PoolRoot*>((*pool)->application_root() -
                                                   offsetof(PoolRoot, application_root));
    PoolHeader& header = root->headers[1];
    REQUIRE(header.journal_id != 0);
    Persister persister((*pool)->medium());
    header.journal_id = 0;
    header.incompat_features &= ~kJournalFeature;
    ++header.generation;
    header.checksum = checksum_of(header);
    persister.persist(&header, sizeof header, "test/1");
    REQUIRE(persister.wait_durable().ok());
    std::filesystem::copy_file(path.string(), left.string());
    std::filesystem::copy_file(path.journal(), left.journal());
    header = root->headers[0];  // this pool goes on as if nothing had been
    persister.persist(&header, sizeof header, "test/2");
  }
  for (int opening = 0; opening < 2; ++opening) {
    const auto pool = Pool::open(options_for(left));
    REQUIRE(pool.status().to_string() == "ok");
    const auto* const root = reinterpret_cast<const PoolRoot*>(
        (*pool)->application_root() - offsetof(PoolRoot, application_root));
    CHECK(root->headers[0].journal_id != 0);
    CHECK(root->headers[0].journal_id == root->headers[1].journal_id);
    CHECK(root->headers[0].generation == root->headers[1].generation);
  }
}

}  // namespace
}  // namespace flugs::pmem
