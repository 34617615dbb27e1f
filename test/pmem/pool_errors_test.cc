#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "pmem/kinds/pool_image.h"
#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"
#include "pmem/space/extent_allocator.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

using test::PoolBuffer;
using test::TemporaryPath;

PoolOptions options_for(const std::string& path) {
  PoolOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{32} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = 0;
  return options;
}

void make_pool(const TemporaryPath& path) {
  REQUIRE(Pool::create(options_for(path.string())).ok());
}

Status status_of_opening(const std::string& path) { return Pool::open(options_for(path)).status(); }

/// Opens the pool; expects `code` and all of `words` in the message.
void check_refused(const std::string& path, StatusCode code,
                   std::initializer_list<const char*> words) {
  const Status status = status_of_opening(path);
  INFO(status.to_string());
  CHECK(status.code() == code);
  CHECK(status.message().find(path) != std::string_view::npos);
  for (const char* word : words) CHECK(status.message().find(word) != std::string_view::npos);
}

/// Lets `change` edit the file's two headers and corrects their checksums.
void edit_headers(const TemporaryPath& path, const std::function<void(PoolHeader&)>& change) {
  const int fd = open(path.string().c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  std::uint64_t root = 0;
  REQUIRE(pread(fd, &root, sizeof root, 6144) == sizeof root);
  root = (root + 63) / 64 * 64;
  for (int copy = 0; copy < 2; ++copy) {
    const auto at =
        static_cast<off_t>(root + static_cast<std::uint64_t>(copy) * sizeof(PoolHeader));
    PoolHeader header;
    REQUIRE(pread(fd, &header, sizeof header, at) == sizeof header);
    REQUIRE(header.magic == kPoolMagic);
    change(header);
    header.checksum = checksum_of(header);
    REQUIRE(pwrite(fd, &header, sizeof header, at) == sizeof header);
  }
  close(fd);
}

/// The exit status of `action` in a child process, run as user nobody if possible.
int in_child(bool as_nobody, const std::function<int()>& action) {
  const pid_t child = fork();
  if (child == 0) {
    if (as_nobody && (setegid(65534) != 0 || seteuid(65534) != 0)) _exit(99);
    _exit(action());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

TEST_CASE("options out of range are refused before anything is made", "[pmem][pool]") {
  const TemporaryPath path;
  PoolOptions options = options_for(path.string());
  const auto refused = [&](const char* word) {
    const Status status = Pool::create(options).status();
    INFO(status.to_string());
    CHECK(status.code() == StatusCode::kInvalidArgument);
    CHECK(status.message().find(word) != std::string_view::npos);
    CHECK(access(path.string().c_str(), F_OK) != 0);
  };
  SECTION("too small") {
    options.max_bytes = (8 << 20) - 1;
    refused("at least 8388608");
  }
  SECTION("too large") {
    options.max_bytes = ~std::uint64_t{0};
    refused("at most");
  }
  SECTION("extent unit") {
    options.extent_unit_bytes = GENERATE(0U, 32U, 96U, 131072U);
    refused("power of two");
  }
  SECTION("segment") {
    options.segment_bytes = GENERATE(std::uint64_t{0}, std::uint64_t{4097});
    refused("multiple");
  }
}

TEST_CASE("a path that exists is not created again", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  CHECK(Pool::create(options_for(path.string())).code() == StatusCode::kAlreadyExists);
  CHECK(status_of_opening(path.string()).ok());
}

TEST_CASE("a pool cannot be created where there is no directory", "[pmem][pool]") {
  CHECK(Pool::create(options_for("/dev/shm/flugs-none/pool")).code() == StatusCode::kNotFound);
}

TEST_CASE("a missing file, a directory, a symbolic link and a pipe are refused", "[pmem][pool]") {
  const TemporaryPath path;
  check_refused(path.string(), StatusCode::kNotFound, {});
  check_refused("/dev/shm", StatusCode::kInvalidArgument, {});
  const TemporaryPath link;
  make_pool(path);
  REQUIRE(symlink(path.string().c_str(), link.string().c_str()) == 0);
  check_refused(link.string(), StatusCode::kInvalidArgument, {"symbolic link"});
  CHECK(Pool::create(options_for(link.string())).code() == StatusCode::kAlreadyExists);
  const TemporaryPath pipe;
  REQUIRE(mkfifo(pipe.string().c_str(), 0600) == 0);
  check_refused(pipe.string(), StatusCode::kInvalidArgument, {"regular"});
}

TEST_CASE("a second opener is refused, in this process and in another", "[pmem][pool]") {
  const TemporaryPath path;
  auto pool = Pool::create(options_for(path.string()));
  REQUIRE(pool.ok());
  check_refused(path.string(), StatusCode::kBusy, {"another process"});
  const int code = in_child(
      false, [&] { return static_cast<int>(Pool::open(options_for(path.string())).code()); });
  CHECK(code == static_cast<int>(StatusCode::kBusy));
  pool->reset();
  CHECK(status_of_opening(path.string()).ok());
}

TEST_CASE("a foreign file is reported as such", "[pmem][pool]") {
  const TemporaryPath path;
  const std::string text =
      GENERATE(std::string("hi"), std::string("SQLite format 3"), std::string(100000, 'x'));
  std::ofstream(path.string()) << text;
  check_refused(path.string(), StatusCode::kIncompatible,
                {"not a flugs pool", text.substr(0, 2).c_str()});
}

TEST_CASE("a libpmemobj pool of another layout is reported as such", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  const int fd = open(path.string().c_str(), O_RDWR);
  REQUIRE(pwrite(fd, "other", 6, 4096) == 6);
  close(fd);
  check_refused(path.string(), StatusCode::kIncompatible, {"other", "flugs"});
}

TEST_CASE("an empty or zeroed file is a creation cut short", "[pmem][pool]") {
  const TemporaryPath path;
  std::ofstream(path.string()).flush();
  check_refused(path.string(), StatusCode::kCorrupt, {"empty"});
  REQUIRE(truncate(path.string().c_str(), 32 << 20) == 0);
  check_refused(path.string(), StatusCode::kCorrupt, {"zeros"});
}

TEST_CASE("a truncated pool is refused wherever it was cut", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  const off_t bytes = GENERATE(100, 5000, 1 << 20, 8 << 20, (32 << 20) - 4096, (32 << 20) - 1);
  REQUIRE(truncate(path.string().c_str(), bytes) == 0);
  check_refused(path.string(), StatusCode::kCorrupt, {std::to_string(bytes).c_str()});
}

TEST_CASE("a pool of a newer version or with unknown features is refused", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  SECTION("version") {
    edit_headers(path, [](PoolHeader& header) { header.format_version = 6; });
    check_refused(path.string(), StatusCode::kIncompatible, {"version 6", "version 13"});
  }
  SECTION("incompatible feature") {
    edit_headers(path, [](PoolHeader& header) { header.incompat_features = 0x10; });
    check_refused(path.string(), StatusCode::kIncompatible, {"0x10"});
  }
  SECTION("a compatible feature is no obstacle") {
    edit_headers(path, [](PoolHeader& header) { header.compat_features = 0x10; });
    CHECK(status_of_opening(path.string()).ok());
  }
}

TEST_CASE("headers that contradict themselves are refused", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  edit_headers(
      path,
      GENERATE(
          as<std::function<void(PoolHeader&)>>(), [](PoolHeader& h) { h.extent_unit_bytes = 100; },
          [](PoolHeader& h) { h.max_bytes += 4096; }, [](PoolHeader& h) { h.segment_bytes = 0; },
          [](PoolHeader& h) { h.arena_count = 0; }, [](PoolHeader& h) { h.arena_count = 100000; },
          [](PoolHeader& h) { h.arenas_checksum ^= 1; }));
  check_refused(path.string(), StatusCode::kCorrupt, {"expected"});
}

TEST_CASE("one damaged header is repaired from the other, two are too many", "[pmem][pool]") {
  const PoolBuffer buffer(131072);
  REQUIRE(Pool::create_in_memory(buffer.span(), {}).ok());
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  const PoolHeader good = root.headers[0];
  const std::size_t copy = GENERATE(0U, 1U);
  const std::size_t byte = GENERATE(range(std::size_t{0}, sizeof(PoolHeader), std::size_t{5}));
  reinterpret_cast<std::byte*>(&root.headers[copy])[byte] ^= std::byte{0x20};
  {
    auto pool = Pool::open_in_memory(buffer.span(), {});
    REQUIRE(pool.ok());
    CHECK((*pool)->uuid() == good.uuid);
  }
  CHECK(std::memcmp(&root.headers[copy], &good, sizeof good) == 0);
  reinterpret_cast<std::byte*>(&root.headers[0])[byte] ^= std::byte{0x20};
  reinterpret_cast<std::byte*>(&root.headers[1])[byte] ^= std::byte{0x20};
  CHECK(Pool::open_in_memory(buffer.span(), {}).code() == StatusCode::kCorrupt);
}

TEST_CASE("every flipped bit of the arena table is found or harmless", "[pmem][pool]") {
  const PoolBuffer buffer(131072);
  REQUIRE(Pool::create_in_memory(buffer.span(), {}).ok());
  auto& root = *reinterpret_cast<PoolRoot*>(buffer.span().data());
  auto* bytes = reinterpret_cast<std::byte*>(root.arenas());
  for (std::size_t bit = 0; bit < sizeof(ArenaRecord) * 8; ++bit) {
    const std::byte mask{static_cast<unsigned char>(1U << bit % 8)};
    bytes[bit / 8] ^= mask;
    const Status status = Pool::open_in_memory(buffer.span(), {}).status();
    INFO("bit " << bit << ": " << status.to_string());
    const bool is_geometry = bit / 8 < offsetof(ArenaRecord, allocated_limit);
    CHECK((status.code() == StatusCode::kCorrupt || (status.ok() && !is_geometry)));
    bytes[bit / 8] ^= mask;
  }
}

TEST_CASE("a buffer that cannot be a pool is refused", "[pmem][pool]") {
  const PoolBuffer buffer(131072);
  const std::span<std::byte> bytes = buffer.span();
  CHECK(Pool::create_in_memory(bytes.subspan(8), {}).code() == StatusCode::kInvalidArgument);
  CHECK(Pool::open_in_memory(bytes.subspan(8), {}).code() == StatusCode::kInvalidArgument);
  CHECK(Pool::create_in_memory(bytes.first(4096), {}).code() == StatusCode::kInvalidArgument);
  CHECK(Pool::open_in_memory(bytes.first(64), {}).code() == StatusCode::kCorrupt);
  CHECK(Pool::open_in_memory(bytes, {}).code() == StatusCode::kCorrupt);
  REQUIRE(Pool::create_in_memory(bytes, {}).ok());
  CHECK(Pool::open_in_memory(bytes.first(65536), {}).code() == StatusCode::kCorrupt);
}

TEST_CASE("a pool without write permission gives kReadOnly", "[pmem][pool]") {
  if (geteuid() != 0) {
    WARN("not root: the part that becomes another user is skipped");
    return;
  }
  const TemporaryPath path;
  make_pool(path);
  REQUIRE(chmod(path.string().c_str(), 0444) == 0);
  const int code = in_child(
      true, [&] { return static_cast<int>(Pool::open(options_for(path.string())).code()); });
  CHECK(code == static_cast<int>(StatusCode::kReadOnly));
}

/// A file system of its own, removed at the end.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& size) : path_("/dev/shm") {
    ::mkdir(path_.string().c_str(), 0700);
    is_mounted_ =
        ::mount("flugs-test", path_.string().c_str(), "tmpfs", 0, ("size=" + size).c_str()) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (is_mounted_) ::umount2(path_.string().c_str(), MNT_DETACH);
    ::rmdir(path_.string().c_str());
  }
  bool is_mounted() const { return is_mounted_; }
  std::string file() const { return path_.string() + "/pool"; }

 private:
  TemporaryPath path_;
  bool is_mounted_ = false;
};

TEST_CASE("a medium too small for the first segment leaves no file behind", "[pmem][pool]") {
  // From less than the head to almost enough: never a signal, always a status.
  const int kilobytes = GENERATE(range(64, 9000, 600));
  const SmallDisk disk(std::to_string(kilobytes) + "k");
  if (!disk.is_mounted()) {
    WARN("cannot mount: skipped");
    return;
  }
  PoolOptions options = options_for(disk.file());
  options.max_bytes = std::uint64_t{64} << 30;
  options.segment_bytes = std::uint64_t{4} << 20;
  const Status status = Pool::create(options).status();
  INFO(kilobytes << " KB: " << status.to_string());
  CHECK((status.code() == StatusCode::kOutOfSpace || status.ok()));
  CHECK(((access(disk.file().c_str(), F_OK) == 0) == status.ok()));
  if (kilobytes < 4000) CHECK_FALSE(status.ok());
}

TEST_CASE("a pool whose medium is full can be closed", "[pmem][pool]") {
  const SmallDisk disk("16m");
  if (!disk.is_mounted()) {
    WARN("cannot mount: skipped");
    return;
  }
  PoolOptions options = options_for(disk.file());
  options.max_bytes = std::uint64_t{64} << 30;
  options.segment_bytes = std::uint64_t{2} << 20;
  options.grow_ahead_bytes = std::uint64_t{4} << 20;
  auto pool = Pool::create(options);
  REQUIRE(pool.status().to_string() == "ok");
  {
    Persister persister((*pool)->medium());
    while ((*pool)->allocator().allocate(1 << 20, persister).ok()) {
    }
    persister.fence("test/1");
  }
  pool->reset();  // the thread that keeps space ready wants more, and must end all the same
  CHECK(Pool::open(options).ok());
}

TEST_CASE("a full medium gives kOutOfSpace, and later space again", "[pmem][pool]") {
  const SmallDisk disk("24m");
  if (!disk.is_mounted()) {
    WARN("cannot mount: skipped");
    return;
  }
  PoolOptions options = options_for(disk.file());
  options.max_bytes = std::uint64_t{64} << 30;
  options.segment_bytes = std::uint64_t{2} << 20;
  options.grow_ahead_bytes = GENERATE(std::uint64_t{0}, std::uint64_t{4} << 20);
  auto pool = Pool::create(options);
  REQUIRE(pool.status().to_string() == "ok");
  Pool& p = **pool;
  Persister persister(p.medium());
  int count = 0;
  Extent last;
  for (;; ++count) {
    auto extent = p.allocator().allocate(1 << 20, persister);
    if (!extent.ok()) {
      CHECK(extent.code() == StatusCode::kOutOfSpace);
      CHECK(extent.status().message().find("No space left") != std::string_view::npos);
      CHECK(is_lack_of_bytes(extent.status()));
      break;
    }
    std::memset(p.base() + extent->offset, 1, 1 << 20);
    persister.persist(p.base() + extent->offset, 1 << 20, "test/1");
    last = *extent;
  }
  CHECK(count >= 12);
  p.allocator().release(last);
  auto extent = p.allocator().allocate(1 << 20, persister);
  REQUIRE(extent.ok());
  CHECK(p.base()[extent->offset] == std::byte{0});
  persister.fence("test/2");
  const std::string limit = "size=40m";
  REQUIRE(::mount("flugs-test", disk.file().substr(0, disk.file().rfind('/')).c_str(), "tmpfs",
                  MS_REMOUNT, limit.c_str()) == 0);
  CHECK(p.allocator().allocate(4 << 20, persister).ok());
  persister.fence("test/3");
}

/// Stores a word into the file.
void set_word(const TemporaryPath& path, std::uint64_t offset, std::uint64_t word) {
  const int fd = open(path.string().c_str(), O_RDWR);
  REQUIRE(fd >= 0);
  REQUIRE(pwrite(fd, &word, sizeof word, static_cast<off_t>(offset)) == sizeof word);
  close(fd);
}

/// Opening succeeds, because it does not need this part; an audit reports the damage.
void check_only_audit_minds(const TemporaryPath& path, const std::string& part,
                            const std::string& words) {
  PoolOptions options;
  options.path = path.string();
  CHECK(Pool::open(options).ok());
  std::vector<ImageFinding> findings;
  REQUIRE(PoolImage::of_file(path.string(), findings).ok());
  const auto found =
      std::find_if(findings.begin(), findings.end(),
                   [&](const ImageFinding& finding) { return finding.part == part; });
  REQUIRE(found != findings.end());
  INFO(found->status.to_string());
  CHECK(found->status.code() == StatusCode::kCorrupt);
  CHECK(found->status.message().find(words) != std::string::npos);
}

// libpmemobj itself crashes or hangs on these: lane 2, each of its logs.
TEST_CASE("only audits report a lane of libpmemobj with unfinished work", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  const std::uint64_t lane = 8192 + 2 * 3072;
  const std::uint64_t log = GENERATE(0U, 256U, 960U);
  SECTION("a checksum") { set_word(path, lane + log, 1); }
  SECTION("another log behind it") { set_word(path, lane + log + 8, 4096); }
  SECTION("a capacity") { set_word(path, lane + log + 16, 1 << 30); }
  SECTION("an entry") { set_word(path, lane + log + 64, ~std::uint64_t{25}); }
  check_only_audit_minds(path, "libpmemobj's lanes", "lane 2 of libpmemobj");
}

TEST_CASE("only audits report a changed heap of libpmemobj", "[pmem][pool]") {
  const TemporaryPath path;
  make_pool(path);
  constexpr std::uint64_t kHeap = 8192 + 1024 * 3072;
  const std::uint64_t offset = kHeap + GENERATE(0U, 40U, 1024U, 1024U + 64U, 1024U + 72U);
  set_word(path, offset, 0x7777777777777777u);
  check_only_audit_minds(path, "libpmemobj's heap", "libpmemobj's");
}

}  // namespace
}  // namespace flugs::pmem
