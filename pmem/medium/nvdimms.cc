#include "pmem/medium/nvdimms.h"

#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

// The kernel's tree (Documentation/driver-api/nvdimm, drivers/acpi/nfit, drivers/cxl/pmem.c):
//   dev/block/MAJOR:MINOR               a link into a region's folder, or to a device that has
//                                       `slaves` (device mapper), links to those below it
//   .../regionN/persistence_domain      "cpu_cache": eADR; "memory_controller", or nothing
//   .../regionN/mappings, mappingI      number of DIMMs; "nmemN,start,bytes,position" of each
//   bus/nd/devices/nmemN/nfit/          dirty_shutdown, id; of CXL memory in cxl/

namespace flugs::pmem {

namespace {

namespace fs = std::filesystem;

constexpr int kStackedDevicesMax = 8;       // of device mapper; a loop would be damage
constexpr std::uint64_t kMappingsMax = 64;  // the kernel allows 32
constexpr std::size_t kTextBytesMax = 255;

/// The first line of a small file; nullopt: it cannot be read, or is longer.
std::optional<std::string> line_of_file(const fs::path& path) {
  std::ifstream file(path);
  std::array<char, kTextBytesMax + 1> text{};
  file.read(text.data(), text.size());
  const auto bytes = static_cast<std::size_t>(file.gcount());
  if (file.bad() || !file.eof() || bytes == 0) return std::nullopt;
  const std::string_view all(text.data(), bytes);
  return std::string(all.substr(0, all.find('\n')));
}

std::optional<std::uint64_t> number_in_file(const fs::path& path) {
  const std::optional<std::string> text = line_of_file(path);
  if (!text) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return number;
}

/// Whether `name` is `word` and a number, as the kernel names its devices.
bool is_numbered(std::string_view name, std::string_view word) noexcept {
  if (!name.starts_with(word) || name.size() == word.size()) return false;
  const std::string_view number = name.substr(word.size());
  return number.find_first_not_of("0123456789") == std::string_view::npos;
}

/// Adds the regions that the device at `place` lies in. False: a part of it lies in none.
bool add_regions(const fs::path& place, int depth, std::set<fs::path>& regions) {
  std::error_code error;
  const fs::path device = fs::canonical(place, error);
  if (error || depth == 0) return false;
  fs::directory_iterator slave(device / "slaves", error);
  if (!error && slave != fs::directory_iterator()) {
    for (; !error && slave != fs::directory_iterator(); slave.increment(error))
      if (!add_regions(slave->path(), depth - 1, regions)) return false;
    return !error;
  }
  for (fs::path up = device; up.has_relative_path(); up = up.parent_path()) {
    if (!is_numbered(up.filename().native(), "region")) continue;
    regions.insert(up);
    return true;
  }
  return false;
}

struct Dimm {
  std::string name;
  std::string id;
  std::uint64_t count = 0;
};

/// The counter of the DIMM `name`. nullopt: not known, and `why` says the reason.
std::optional<Dimm> read_dimm(const std::string& name, const fs::path& sysfs, std::string& why) {
  const fs::path folder = sysfs / "bus/nd/devices" / name;
  for (const char* kind : {"nfit", "cxl"}) {
    const std::optional<std::uint64_t> count = number_in_file(folder / kind / "dirty_shutdown");
    if (!count) continue;
    // The numbers in names may change when the machine starts.
    std::optional<std::string> id = line_of_file(folder / kind / "id");
    return Dimm{name, id.has_value() && !id->empty() ? *std::move(id) : name, *count};
  }
  why = fmt::format("{} has no readable dirty_shutdown", name);
  return std::nullopt;
}

/// All DIMMs of the regions. Fewer, with `why`: not all are known.
std::vector<Dimm> read_dimms(const std::set<fs::path>& regions, const fs::path& sysfs,
                             std::string& why) {
  std::set<std::string> names;
  for (const fs::path& region : regions) {
    const std::uint64_t mappings = number_in_file(region / "mappings").value_or(0);
    if (mappings == 0 || mappings > kMappingsMax)
      why = fmt::format("{} names no DIMMs", region.filename().native());
    for (std::uint64_t i = 0; why.empty() && i < mappings; ++i) {
      const std::string line =
          line_of_file(region / fmt::format("mapping{}", i)).value_or(std::string());
      const std::string name = line.substr(0, line.find(','));
      if (!is_numbered(name, "nmem"))
        why = fmt::format("mapping{} of {} names no DIMM", i, region.filename().native());
      names.insert(name);
    }
  }
  std::vector<Dimm> dimms;
  for (const std::string& name : names) {
    if (!why.empty()) break;
    if (std::optional<Dimm> dimm = read_dimm(name, sysfs, why)) dimms.push_back(*std::move(dimm));
  }
  return dimms;
}

ShutdownCount sum_of(std::vector<Dimm> dimms) {
  std::sort(dimms.begin(), dimms.end(), [](const Dimm& a, const Dimm& b) { return a.id < b.id; });
  ShutdownCount sum;
  std::string ids;
  for (const Dimm& dimm : dimms) {
    ids += dimm.id;
    ids += '\n';  // an identity has none: it is a line of a file
    sum.count += dimm.count;
  }
  sum.devices = XXH3_64bits(ids.data(), ids.size());
  if (sum.devices == 0) sum.devices = 1;
  return sum;
}

}  // namespace

Nvdimms find_nvdimms(std::uint64_t device, const std::string& sysfs) {
  Nvdimms found;
  std::set<fs::path> regions;
  const fs::path root(sysfs);
  const fs::path place = root / "dev/block" / fmt::format("{}:{}", major(device), minor(device));
  if (!add_regions(place, kStackedDevicesMax, regions)) {
    found.why_unknown = "the file does not lie on persistent memory that the kernel names";
    return found;
  }
  found.has_durable_caches = std::all_of(regions.begin(), regions.end(), [](const fs::path& r) {
    return line_of_file(r / "persistence_domain") == "cpu_cache";
  });
  std::vector<Dimm> dimms = read_dimms(regions, root, found.why_unknown);
  if (!found.why_unknown.empty()) return found;
  for (const Dimm& dimm : dimms) found.names += (found.names.empty() ? "" : ", ") + dimm.name;
  found.shutdowns = sum_of(std::move(dimms));
  return found;
}

}  // namespace flugs::pmem
