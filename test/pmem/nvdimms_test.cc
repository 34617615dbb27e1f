#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "pmem/medium/nvdimms.h"
#include "test/pmem/device_tree.h"

namespace flugs::pmem {
namespace {

void check_unknown(const Nvdimms& found, const std::string& why) {
  CHECK_FALSE(found.shutdowns.has_value());
  INFO(found.why_unknown);
  CHECK(found.why_unknown.find(why) != std::string::npos);
}

TEST_CASE("the counts of all DIMMs below a file are added up", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  tree.add_dimm(1, 4);
  const Nvdimms found = tree.find();
  REQUIRE(found.shutdowns.has_value());
  CHECK(found.shutdowns->count == 7);
  CHECK(found.shutdowns->devices != 0);
  CHECK(found.names == "nmem0, nmem1");
  CHECK(found.why_unknown.empty());
  CHECK_FALSE(found.has_durable_caches);
}

TEST_CASE("DIMMs are known by their identity, not by their number", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3, "8089-a2-1834-00000001");
  tree.add_dimm(1, 4, "8089-a2-1834-00000002");
  const Nvdimms before = tree.find();
  DeviceTree renumbered;
  renumbered.add_dimm(0, 4, "8089-a2-1834-00000002");
  renumbered.add_dimm(1, 3, "8089-a2-1834-00000001");
  CHECK(renumbered.find().shutdowns == before.shutdowns);
  DeviceTree exchanged;
  exchanged.add_dimm(0, 3, "8089-a2-1834-00000001");
  exchanged.add_dimm(1, 4, "8089-a2-1834-00000003");
  CHECK(exchanged.find().shutdowns->devices != before.shutdowns->devices);
  tree.add_dimm(2, 0);
  CHECK(tree.find().shutdowns->devices != before.shutdowns->devices);
  CHECK(tree.find().shutdowns->count == before.shutdowns->count);
}

TEST_CASE("CXL memory has its count in another folder", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 12, "0x1234", "cxl");
  CHECK(tree.find().shutdowns->count == 12);
}

TEST_CASE("a file on several regions has the devices of all of them", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  tree.begin_region(1);
  tree.add_dimm(5, 40);
  tree.stack();
  const Nvdimms found = tree.find();
  REQUIRE(found.shutdowns.has_value());
  CHECK(found.shutdowns->count == 43);
  CHECK(found.names == "nmem0, nmem5");
  SECTION("a part elsewhere") {
    tree.stack_on_disk();
    check_unknown(tree.find(), "does not lie on persistent memory");
  }
  SECTION("caches count only if those of all regions are durable") {
    tree.write(tree.region(0) / "persistence_domain", "cpu_cache\n");
    CHECK_FALSE(tree.find().has_durable_caches);
    tree.write(tree.region(1) / "persistence_domain", "cpu_cache\n");
    CHECK(tree.find().has_durable_caches);
  }
}

TEST_CASE("durable caches are told by the region's persistence domain", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  for (const char* domain : {"memory_controller\n", "\n", "", "cpu_cache and more\n", "cpu\n"}) {
    tree.write(tree.region(0) / "persistence_domain", domain);
    CHECK_FALSE(tree.find().has_durable_caches);
  }
  tree.write(tree.region(0) / "persistence_domain", "cpu_cache\n");
  CHECK(tree.find().has_durable_caches);
  std::filesystem::remove(tree.dimm(0) / "nfit/dirty_shutdown");
  CHECK(tree.find().has_durable_caches);
}

TEST_CASE("a count that is not as the kernel writes it is not known", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  tree.add_dimm(1, 3);
  const std::string bad =
      GENERATE("", "\n", "-1\n", "7 \n", "0x7\n", "x\n", "99999999999999999999999\n", "7", "8\n");
  tree.write(tree.dimm(1) / "nfit/dirty_shutdown", bad);
  if (bad[0] == '7' && bad.size() == 1) {
    CHECK(tree.find().shutdowns->count == 10);
  } else if (bad == "8\n") {
    CHECK(tree.find().shutdowns->count == 11);
  } else {
    check_unknown(tree.find(), "nmem1 has no readable dirty_shutdown");
  }
}

TEST_CASE("a count that is missing or cannot be read is not known", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const auto count = tree.dimm(0) / "nfit/dirty_shutdown";
  SECTION("missing") { std::filesystem::remove(count); }
  SECTION("a folder") {
    std::filesystem::remove(count);
    std::filesystem::create_directory(count);
  }
  SECTION("no rights") {
    if (::geteuid() == 0) return;  // may read everything
    std::filesystem::permissions(count, std::filesystem::perms::none);
  }
  SECTION("longer than any number") { tree.write(count, std::string(300, '1')); }
  check_unknown(tree.find(), "nmem0");
}

TEST_CASE("a region that does not name its DIMMs has no count", "[pmem][nvdimms]") {
  DeviceTree tree;
  tree.add_dimm(0, 3);
  const auto region = tree.region(0);
  SECTION("none") {
    tree.write(region / "mappings", "0\n");
    check_unknown(tree.find(), "region0 names no DIMMs");
  }
  SECTION("too many") {
    tree.write(region / "mappings", "65\n");
    check_unknown(tree.find(), "region0 names no DIMMs");
  }
  SECTION("no number") {
    tree.write(region / "mappings", "all\n");
    check_unknown(tree.find(), "region0 names no DIMMs");
  }
  SECTION("one that is not there") {
    tree.write(region / "mappings", "2\n");
    check_unknown(tree.find(), "mapping1 of region0");
  }
  SECTION("one that leads elsewhere") {
    tree.write(region / "mapping0", "../../../etc,0,1,0\n");
    check_unknown(tree.find(), "mapping0 of region0");
  }
  SECTION("one without a number") {
    tree.write(region / "mapping0", "nmem,0,1,0\n");
    check_unknown(tree.find(), "mapping0 of region0");
  }
}

TEST_CASE("a file that does not lie on persistent memory has no count", "[pmem][nvdimms]") {
  DeviceTree tree;
  check_unknown(find_nvdimms(tree.device() + 1, tree.root()), "does not lie on persistent memory");
  check_unknown(find_nvdimms(0, "/nonexistent"), "does not lie on persistent memory");
  tree.stack_on_itself();  // no kernel makes such a tree
  check_unknown(tree.find(), "does not lie on persistent memory");
}

}  // namespace
}  // namespace flugs::pmem
