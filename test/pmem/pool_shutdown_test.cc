// Pools whose devices count the times that they lost their power without a proper shutdown.

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "test/pmem/device_tree.h"
#include "test/support/temporary_pool.h"
#include "verify/crash/rig/explorer.h"

namespace flugs::pmem {
namespace {

using test::PoolBuffer;
using test::TemporaryPath;

PoolOptions options_on(const DeviceTree& tree, const TemporaryPath& path) {
  PoolOptions options;
  options.path = path.string();
  options.max_bytes = std::uint64_t{8} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = 0;
  options.sysfs = tree.root();
  return options;
}

/// What the pool's header says, in the file.
PoolHeader header_of(const TemporaryPath& path) {
  std::ifstream file(path.string(), std::ios::binary);
  std::uint64_t root = 0;
  file.seekg(6144);
  file.read(reinterpret_cast<char*>(&root), sizeof root);
  std::array<PoolHeader, 2> headers;
  file.seekg(static_cast<std::streamoff>((root + 63) / 64 * 64));
  file.read(reinterpret_cast<char*>(&headers), sizeof headers);
  REQUIRE(std::memcmp(headers.data(), &headers[1], sizeof(PoolHeader)) == 0);
  REQUIRE(headers[0].checksum == checksum_of(headers[0]));
  return headers[0];
}

ShutdownCount mark_of(const TemporaryPath& path) {
  const PoolHeader header = header_of(path);
  CHECK(((header.incompat_features & kInUseFeature) != 0) == (header.used_devices != 0));
  return {header.used_devices, header.shutdown_count};
}

/// A pool as a process leaves it that is killed while it uses the pool.
void make_killed_pool(const DeviceTree& tree, const TemporaryPath& path) {
  const TemporaryPath open;
  const auto pool = Pool::create(options_on(tree, open));
  REQUIRE(pool.status().to_string() == "ok");
  std::filesystem::copy_file(open.string(), path.string());
}

void check_refused(const PoolOptions& options, std::initializer_list<const char*> words) {
  for (const bool only_reads : {false, true}) {
    const Status status =
        only_reads ? Pool::open_to_read(options).status() : Pool::open(options).status();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kCorrupt);
    CHECK(status.message().find(options.path) != std::string_view::npos);
    CHECK(status.message().find("accept_lost_lines") != std::string_view::npos);
    CHECK(status.message().find("flugs pool check") != std::string_view::npos);
    for (const char* word : words) CHECK(status.message().find(word) != std::string_view::npos);
  }
}

TEST_CASE("a pool says that it is in use while it is open", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  tree.add_dimm(1, 4);
  const TemporaryPath path;
  {
    const auto pool = Pool::create(options_on(tree, path));
    REQUIRE(pool.status().to_string() == "ok");
    CHECK(mark_of(path) == *tree.find().shutdowns);
    CHECK((*pool)->medium().nvdimms().shutdowns->count == 7);
  }
  CHECK(mark_of(path) == ShutdownCount{});
  for (const std::uint64_t count : {4U, 9U, 2U}) {  // nobody used it meanwhile
    tree.set_count(1, count);
    const auto pool = Pool::open(options_on(tree, path));
    REQUIRE(pool.status().to_string() == "ok");
    CHECK(mark_of(path).count == 3 + count);
  }
  CHECK(mark_of(path) == ShutdownCount{});
  CHECK(Pool::open_to_read(options_on(tree, path)).ok());
}

TEST_CASE("a pool on devices without a count has no mark", "[pmem][shutdown]") {
  const DeviceTree tree;
  const TemporaryPath path;
  const auto pool = Pool::create(options_on(tree, path));
  REQUIRE(pool.status().to_string() == "ok");
  CHECK(mark_of(path) == ShutdownCount{});
  CHECK_FALSE((*pool)->medium().nvdimms().shutdowns.has_value());
  CHECK(header_of(path).generation == 1);
}

TEST_CASE("a pool that was in use opens if no device has counted a shutdown since",
          "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const TemporaryPath path;
  make_killed_pool(tree, path);
  CHECK(mark_of(path).count == 3);
  CHECK(Pool::open_to_read(options_on(tree, path)).status().to_string() == "ok");
  const std::uint64_t generation = header_of(path).generation;
  const auto pool = Pool::open(options_on(tree, path));
  REQUIRE(pool.status().to_string() == "ok");
  CHECK(header_of(path).generation == generation);  // says so already
}

TEST_CASE("a pool that was in use when devices counted a shutdown is refused", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3, "a");
  tree.add_dimm(1, 40, "b");
  const TemporaryPath path;
  make_killed_pool(tree, path);
  PoolOptions options = options_on(tree, path);
  SECTION("more") {
    tree.set_count(1, 41);
    check_refused(options, {"nmem0, nmem1", "expected 43, found 44"});
  }
  SECTION("fewer: nobody knows what the counter does") {
    tree.set_count(1, 0);
    check_refused(options, {"expected 43, found 3"});
  }
  SECTION("a DIMM more") {
    tree.add_dimm(2, 0, "c");
    check_refused(options, {"lies on others", "43 shutdowns", "nmem0, nmem1, nmem2"});
  }
  SECTION("a DIMM less") {
    tree.write(tree.region(0) / "mappings", "1\n");
    check_refused(options, {"lies on others", "(nmem0)"});
  }
  SECTION("another DIMM") {
    tree.write(tree.dimm(1) / "nfit/id", "c\n");
    check_refused(options, {"lies on others"});
  }
  SECTION("no count") {
    std::filesystem::remove(tree.dimm(1) / "nfit/dirty_shutdown");
    check_refused(options, {"is not known", "nmem1 has no readable dirty_shutdown"});
  }
  SECTION("no devices") {
    options.sysfs = "/nonexistent";
    check_refused(options, {"is not known"});
  }
  // What opening it all the same needs: it is asked for once.
  const ShutdownCount refused = mark_of(path);
  options.accepts_lost_lines = true;
  CHECK(Pool::open_to_read(options).status().to_string() == "ok");
  CHECK(mark_of(path) == refused);
  {
    const auto pool = Pool::open(options);
    REQUIRE(pool.status().to_string() == "ok");
    CHECK(mark_of(path) == (*pool)->medium().nvdimms().shutdowns.value_or(ShutdownCount{}));
  }
  options.accepts_lost_lines = false;
  CHECK(Pool::open(options).status().to_string() == "ok");
}

TEST_CASE("a pool that was in use on its devices is refused on a disk", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const TemporaryPath path("/tmp");
  make_killed_pool(tree, path);
  PoolOptions options = options_on(tree, path);
  check_refused(options, {"is not known"});
  options.accepts_lost_lines = true;
  CHECK(Pool::open(options).status().to_string() == "ok");
  CHECK(mark_of(path) == ShutdownCount{});
  options.accepts_lost_lines = false;
  CHECK(Pool::open(options).status().to_string() == "ok");
}

TEST_CASE("a header whose mark contradicts itself is refused", "[pmem][shutdown]") {
  const PoolBuffer buffer(131072);
  REQUIRE(Pool::create_in_memory(buffer.span(), {}).ok());
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  PoolHeader header = root.headers[0];
  SECTION("a feature without devices") { header.incompat_features |= kInUseFeature; }
  SECTION("devices without the feature") { header.used_devices = 7; }
  SECTION("a count without devices") { header.shutdown_count = 7; }
  header.checksum = checksum_of(header);
  root.headers = {header, header};
  const Status status = Pool::open_in_memory(buffer.span(), {}).status();
  INFO(status.to_string());
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("in use on devices") != std::string_view::npos);
}

TEST_CASE("a forked child that closes the pool leaves its parent's mark", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const TemporaryPath path;
  auto pool = Pool::create(options_on(tree, path));
  REQUIRE(pool.status().to_string() == "ok");
  const pid_t child = fork();
  if (child == 0) {
    pool->reset();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(mark_of(path).count == 3);
  pool->reset();
  CHECK(mark_of(path) == ShutdownCount{});
}

TEST_CASE("an opening that fails behind the mark takes it back", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const TemporaryPath path;
  PoolOptions options = options_on(tree, path);
  REQUIRE(Pool::create(options).ok());
  options.max_bytes = std::uint64_t{4} << 20;  // less than the pool has
  CHECK(Pool::open(options).status().code() == StatusCode::kInvalidArgument);
  CHECK(mark_of(path) == ShutdownCount{});
}

TEST_CASE("where the caches are durable no line is flushed", "[pmem][shutdown]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  tree.write(tree.region(0) / "persistence_domain", "cpu_cache\n");
  const TemporaryPath path;
  const auto pool = Pool::create(options_on(tree, path));
  REQUIRE(pool.status().to_string() == "ok");
  Medium& medium = (*pool)->medium();
  CHECK(medium.flush_name() ==
        (std::getenv("FLUGS_FLUSH") == nullptr ? "eadr" : std::getenv("FLUGS_FLUSH")));
  const PersistCounters before = medium.counters();
  Persister persister(medium);
  persister.persist((*pool)->application_root(), 128, "test/1");
  CHECK(medium.counters().fences == before.fences + 1);
  CHECK(medium.counters().lines_flushed == before.lines_flushed + 2);
}

/// The header goes from one mark to another, again and again.
crash::ExplorerReport explore_marks(crash::ExplorerOptions options) {
  const PoolBuffer buffer(16384);
  PoolOptions pool_options;
  pool_options.extent_unit_bytes = 256;
  auto pool = Pool::create_in_memory(buffer.span(), pool_options);
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  ShutdownCount promised;
  ShutdownCount next;
  crash::CrashExplorer explorer(
      buffer.span(),
      [&](std::span<std::byte> image, crash::ExplorerContext&) -> Status {
        const auto& found = *reinterpret_cast<const PoolRoot*>(image.data());
        const Result<PoolHeader> header = choose_header(found.headers, image.size(), "image");
        if (!header.ok()) return header.status();
        const ShutdownCount mark{header->used_devices, header->shutdown_count};
        if (mark == promised || mark == next) return Pool::open_in_memory(image, {}).status();
        return Status(StatusCode::kCorrupt, "another mark than was promised");
      },
      std::move(options));
  (*pool)->medium().set_observer(&explorer);
  {
    Persister persister((*pool)->medium());
    for (std::uint64_t count = 1; count <= 6 && !explorer.is_done(); ++count) {
      for (const ShutdownCount mark : {ShutdownCount{0x77, count}, ShutdownCount{}}) {
        next = mark;
        set_in_use(root, mark, persister);
        promised = mark;
        explorer.crash_now("marked");
      }
    }
  }
  (*pool)->medium().set_observer(nullptr);
  return explorer.report();
}

crash::ExplorerOptions options_for_marks() {
  crash::ExplorerOptions options;
  options.tears_words = true;
  options.random_images = 200;
  return options;
}

TEST_CASE("no crash state of marking a pool as in use loses the mark", "[pmem][crash][shutdown]") {
  const crash::ExplorerReport report = explore_marks(options_for_marks());
  INFO(report.to_string());
  CHECK(report.ok());
  CHECK(report.images_checked > 500);
}

TEST_CASE("every flush and fence of marking a pool as in use is needed",
          "[pmem][crash][shutdown]") {
  crash::ExplorerOptions options = options_for_marks();
  SECTION("flushes") { options.ignored_flush = GENERATE("in-use/1", "in-use/2"); }
  SECTION("fences") { options.ignored_fence = GENERATE("in-use/1", "in-use/2"); }
  CHECK_FALSE(explore_marks(options).ok());
}

}  // namespace
}  // namespace flugs::pmem
