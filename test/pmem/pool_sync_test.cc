// Observes, by replacing fsync, what creating a pool asks the kernel to make durable.

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <vector>

#include "pmem/pool/pool.h"
#include "test/support/temporary_pool.h"

namespace {

/// Inodes of synced directories; main thread only.
thread_local std::vector<ino_t>* synced_directories = nullptr;

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int fd) {
  struct stat info{};
  if (synced_directories != nullptr && ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    synced_directories->push_back(info.st_ino);
  }
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace flugs::pmem {

TEST_CASE("a pool is created when its directory is durable as well", "[pmem][pool]") {
  const test::TemporaryPath path("/tmp");
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{8} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = 0;
  std::vector<ino_t> directories;
  synced_directories = &directories;
  const auto pool = Pool::create(options);
  synced_directories = nullptr;
  REQUIRE(pool.status().to_string() == "ok");
  struct stat info{};
  REQUIRE(::stat("/tmp", &info) == 0);
  // On a disk the journal's, too.
  CHECK(!directories.empty());
  for (const ino_t directory : directories) CHECK(directory == info.st_ino);
}

}  // namespace flugs::pmem
