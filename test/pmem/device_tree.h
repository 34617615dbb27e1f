#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "pmem/medium/nvdimms.h"
#include "test/support/temporary_pool.h"

namespace flugs::pmem {

/// A folder with files and links as the kernel shows them in /sys: the block device below /dev/shm
/// lies in region0, which has the DIMMs that a test adds. It is removed at the end.
class DeviceTree {
 public:
  DeviceTree() {
    struct stat info{};
    if (::stat("/dev/shm", &info) == 0) device_ = info.st_dev;
    std::filesystem::create_directories(root_ / "dev/block");
    std::filesystem::create_directories(bus());
    begin_region(0);
    link_device(region(0) / "namespace/block/pmem0");
  }
  DeviceTree(const DeviceTree&) = delete;
  DeviceTree& operator=(const DeviceTree&) = delete;
  ~DeviceTree() {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  std::string root() const { return root_.string(); }
  std::uint64_t device() const noexcept { return device_; }
  Nvdimms find() const { return find_nvdimms(device_, root()); }

  /// DIMMs are added to this region from now on.
  void begin_region(int number) {
    region_ = number;
    mappings_ = 0;
    std::filesystem::create_directories(region(number) / "namespace/block/pmem0");
    write(region(number) / "mappings", "0\n");
  }
  void add_dimm(int number, std::uint64_t count, const std::string& id = "",
                const std::string& kind = "nfit") {
    const auto folder = dimm(number) / kind;
    std::filesystem::create_directories(folder);
    write(folder / "dirty_shutdown", fmt::format("{}\n", count));
    if (!id.empty()) write(folder / "id", id + "\n");
    write(region(region_) / fmt::format("mapping{}", mappings_),
          fmt::format("nmem{},0,1048576,{}\n", number, mappings_));
    write(region(region_) / "mappings", fmt::format("{}\n", ++mappings_));
  }
  void set_count(int number, std::uint64_t count) {
    write(dimm(number) / "nfit/dirty_shutdown", fmt::format("{}\n", count));
  }

  /// The device becomes one of device mapper, on all regions.
  void stack() {
    for (int number = 0; number <= region_; ++number) {
      const auto below = region(number) / "namespace/block/pmem0";
      const auto slave = stacked() / "slaves" / fmt::format("pmem{}", number);
      std::filesystem::create_directories(slave.parent_path());
      std::filesystem::create_directory_symlink(below, slave);
    }
    link_device(stacked());
  }
  void stack_on_disk() {
    std::filesystem::create_directories(root_ / "devices/pci/block/sda");
    std::filesystem::create_directory_symlink(root_ / "devices/pci/block/sda",
                                              stacked() / "slaves/sda");
  }
  void stack_on_itself() {
    std::filesystem::create_directories(stacked() / "slaves");
    std::filesystem::create_directory_symlink(stacked(), stacked() / "slaves/dm-0");
    link_device(stacked());
  }

  std::filesystem::path region(int number) const {
    return root_ / "devices/ndbus0" / fmt::format("region{}", number);
  }
  std::filesystem::path dimm(int number) const { return bus() / fmt::format("nmem{}", number); }
  void write(const std::filesystem::path& path, const std::string& text) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::filesystem::path bus() const { return root_ / "bus/nd/devices"; }
  std::filesystem::path stacked() const { return root_ / "devices/virtual/block/dm-0"; }
  void link_device(const std::filesystem::path& place) {
    const auto link = root_ / "dev/block" / fmt::format("{}:{}", major(device_), minor(device_));
    std::filesystem::create_directories(place);
    std::filesystem::remove(link);
    std::filesystem::create_directory_symlink(place, link);
  }

  test::TemporaryPath path_;
  std::filesystem::path root_ = path_.string() + ".sys";
  std::uint64_t device_ = 0;
  int region_ = 0;
  int mappings_ = 0;
};

}  // namespace flugs::pmem
