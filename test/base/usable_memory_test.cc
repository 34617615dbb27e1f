#include "base/usable_memory.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <string>

#include "test/support/temporary_pool.h"

namespace flugs {

namespace {

/// Files as the kernel shows them.
class Groups {
 public:
  Groups() { std::filesystem::create_directory(root_.string()); }
  ~Groups() { std::filesystem::remove_all(root_.string()); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void put(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_.string() + "/" + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::uint64_t usable() const {
    return usable_memory_bytes(root_.string() + "/self", root_.string());
  }

 private:
  test::TemporaryPath root_;
};

std::uint64_t machine_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

TEST_CASE("a process may use what the machine and its control groups leave", "[base]") {
  const Groups groups;
  CHECK(groups.usable() == machine_bytes());  // no file
  CHECK(usable_memory_bytes() > 0);
  CHECK(usable_memory_bytes() <= machine_bytes());

  SECTION("version 1") {
    groups.put("self", "9:cpu:/x\n4:memory:/a/b\n0::/\n");
    groups.put("memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
    CHECK(groups.usable() == machine_bytes());
    groups.put("memory/a/memory.limit_in_bytes", "1048576\n");  // of the group around it
    CHECK(groups.usable() == 1048576);
    groups.put("memory/a/b/memory.limit_in_bytes", "4096\n");
    CHECK(groups.usable() == 4096);
  }
  SECTION("version 2") {
    groups.put("self", "0::/a/b\n");
    groups.put("a/b/memory.max", "max\n");
    CHECK(groups.usable() == machine_bytes());
    groups.put("a/memory.max", "8192\n");
    CHECK(groups.usable() == 8192);
  }
  SECTION("the root, as in a container") {
    groups.put("self", "0::/\n");
    groups.put("memory.max", "16384\n");
    CHECK(groups.usable() == 16384);
  }
  SECTION("lines of no known form") {
    groups.put("self", "nonsense\n\n4:memory\n0::a\n");
    CHECK(groups.usable() == machine_bytes());
  }
}

}  // namespace flugs
