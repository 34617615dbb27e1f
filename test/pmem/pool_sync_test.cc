// Observes, by replacing fsync, what creating, opening and closing a pool ask the kernel to make
// durable.

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstddef>
#include <string>
#include <vector>

#include "pmem/pool/pool.h"
#include "test/pmem/device_tree.h"
#include "test/support/temporary_pool.h"

namespace {

/// Inodes of synced directories; main thread only.
thread_local std::vector<ino_t>* synced_directories = nullptr;
/// Labels of flushes, and "fsync"; main thread only.
thread_local std::vector<std::string>* durable_steps = nullptr;

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int fd) {
  struct stat info{};
  if (synced_directories != nullptr && ::fstat(fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    synced_directories->push_back(info.st_ino);
  }
  if (durable_steps != nullptr) durable_steps->push_back("fsync");
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

/// Adds the labels of fences to durable_steps.
class FenceLabels final : public PersistObserver {
 public:
  void on_flush(const void* /*address*/, std::size_t /*bytes*/, Label /*label*/) override {}
  void on_fence(Label label) override {
    if (durable_steps != nullptr) durable_steps->push_back(label);
  }
};

TEST_CASE("a pool is marked as in use before it is written to, and until all is on the devices",
          "[pmem][pool][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const test::TemporaryPath path;
  FenceLabels labels;
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{8} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = 0;
  options.sysfs = tree.root();
  options.observer = &labels;
  REQUIRE(Pool::create(options).ok());
  options.max_bytes = std::uint64_t{9} << 20;  // opening makes the pool larger
  std::vector<std::string> steps;
  durable_steps = &steps;
  auto pool = Pool::open(options);
  durable_steps = nullptr;
  REQUIRE(pool.status().to_string() == "ok");
  CHECK(steps == std::vector<std::string>{"in-use/1", "in-use/2", "fsync", "rely/1", "fsync",
                                          "pool-grow/2", "pool-grow/3"});
  steps.clear();
  durable_steps = &steps;
  pool->reset();
  durable_steps = nullptr;
  // The first tells a forked child. Until the second the thread that makes space may store.
  CHECK(steps == std::vector<std::string>{"fsync", "fsync", "in-use/1", "in-use/2", "fsync"});
}

}  // namespace flugs::pmem
