#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "pmem/pool/pool.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {
namespace {

using test::TemporaryPath;

PoolOptions options_at(const std::string& path) {
  PoolOptions options;
  options.path = path;
  options.max_bytes = std::uint64_t{32} << 20;
  options.segment_bytes = std::uint64_t{1} << 20;
  options.grow_ahead_bytes = 0;
  return options;
}

/// Acts at the n-th fence.
class AtFence final : public PersistObserver {
 public:
  AtFence(int number, std::function<void()> action) : left_(number), action_(std::move(action)) {}
  void on_flush(const void*, std::size_t, Label) override {}
  void on_fence(Label) override {
    if (--left_ == 0) action_();
  }
  bool has_acted() const noexcept { return left_ <= 0; }

 private:
  int left_;
  std::function<void()> action_;
};

std::vector<std::string> files_beginning_with(const std::string& path) {
  std::vector<std::string> found;
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().string().starts_with(path)) found.push_back(entry.path().string());
  return found;
}

/// Starts `creators` processes at once that each create a pool; returns their status codes.
std::vector<StatusCode> create_at_once(const std::string& path, int creators) {
  std::array<int, 2> start{};
  REQUIRE(pipe(start.data()) == 0);
  std::vector<pid_t> children;
  for (int i = 0; i < creators; ++i) {
    children.push_back(fork());
    REQUIRE(children.back() >= 0);
    if (children.back() != 0) continue;
    close(start[1]);
    char nothing = 0;
    if (read(start[0], &nothing, 1) != 0) _exit(255);
    _exit(static_cast<int>(Pool::create(options_at(path)).code()));
  }
  close(start[0]);
  close(start[1]);
  std::vector<StatusCode> codes;
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    codes.push_back(static_cast<StatusCode>(WEXITSTATUS(status)));
  }
  return codes;
}

}  // namespace

TEST_CASE("creation killed at any fence leaves no file", "[pmem][pool]") {
  const TemporaryPath path;
  int fence = 1;
  for (bool was_killed = true; was_killed; ++fence) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      AtFence kill_itself(fence, [] { raise(SIGKILL); });
      PoolOptions options = options_at(path.string());
      options.observer = &kill_itself;
      _exit(Pool::create(options).ok() ? 0 : 1);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    was_killed = WIFSIGNALED(status);
    INFO("fence " << fence);
    if (!was_killed) CHECK(WEXITSTATUS(status) == 0);
    CHECK(files_beginning_with(path.string()).empty() == was_killed);
  }
  CHECK(fence > 3);
  CHECK(Pool::open(options_at(path.string())).ok());
}

TEST_CASE("creation killed at any time leaves no file, or a whole pool", "[pmem][pool]") {
  for (int us = 0; us < 20000; us += 400) {
    const TemporaryPath path;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(Pool::create(options_at(path.string())).ok() ? 0 : 1);
    usleep(static_cast<useconds_t>(us));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    INFO("killed after " << us << " us");
    const Status status = Pool::open(options_at(path.string())).status();
    INFO(status.to_string());
    const StatusCode code = status.code();
    CHECK((code == StatusCode::kOk || code == StatusCode::kNotFound));
  }
}

TEST_CASE("a file that appears during creation stays unchanged", "[pmem][pool]") {
  const TemporaryPath path;
  AtFence meanwhile(1, [&] { std::ofstream(path.string()) << "mine"; });
  PoolOptions options = options_at(path.string());
  options.observer = &meanwhile;
  const Status status = Pool::create(options).status();
  CHECK(meanwhile.has_acted());
  CHECK(status.code() == StatusCode::kAlreadyExists);
  CHECK(status.message().find(path.string()) != std::string_view::npos);
  std::string content;
  std::ifstream(path.string()) >> content;
  CHECK(content == "mine");
}

TEST_CASE("a created pool is mapped by its path", "[pmem][pool]") {
  const TemporaryPath path;
  const auto pool = Pool::create(options_at(path.string()));
  REQUIRE(pool.ok());
  std::ifstream maps("/proc/self/maps");
  bool is_found = false;
  for (std::string line; std::getline(maps, line);) is_found |= line.ends_with(path.string());
  CHECK(is_found);
}

TEST_CASE("one of many concurrent creations of a pool succeeds", "[pmem][pool]") {
  for (int round = 0; round < 10; ++round) {
    const TemporaryPath path;
    const std::vector<StatusCode> codes = create_at_once(path.string(), 4);
    CHECK(std::count(codes.begin(), codes.end(), StatusCode::kOk) == 1);
    CHECK(std::count(codes.begin(), codes.end(), StatusCode::kAlreadyExists) == 3);
    CHECK(Pool::open(options_at(path.string())).ok());
  }
}

TEST_CASE("a pool is created and opened", "[pmem][pool]") {
  const TemporaryPath path;
  CHECK(Pool::create(options_at(path.string())).ok());
  CHECK(Pool::open(options_at(path.string())).ok());
}

// In programs that run only the test above: libpmemobj reads most of its variables when it is
// loaded.
TEST_CASE("nothing in the environment of libpmemobj keeps a process from creating a pool",
          "[pmem][pool]") {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  for (const std::string setting :
       {"HARMLESS=1", "PMEMOBJ_CONF=garbage", "PMEMOBJ_CONF='heap.nothing=1;'",
        "PMEMOBJ_CONF_FILE=/nowhere", "PMEM_IS_PMEM_FORCE=1", "PMEM_NO_CLWB=1", "PMEM_NO_FLUSH=1",
        "PMEM_MOVNT_THRESHOLD=-1", "PMEMOBJ_LOG_LEVEL=garbage", "PMEMOBJ_NLANES=0",
        "PMREORDER_EMIT_LOG=1"}) {
    INFO(setting);
    const std::string command =
        setting + " '" + program + "' 'a pool is created and opened' >/dev/null 2>&1";
    CHECK(std::system(command.c_str()) == 0);
  }
}

}  // namespace flugs::pmem
