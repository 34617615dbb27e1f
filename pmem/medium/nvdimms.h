#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace flugs::pmem {

/// How often the devices below a pool lost their power without a proper shutdown: then lines that
/// had left the caches did not reach the medium, although flush and fence had promised it.
struct ShutdownCount {
  std::uint64_t devices = 0;  ///< hash of the identities of all devices; 0: none are known
  std::uint64_t count = 0;    ///< sum of their counters

  bool operator==(const ShutdownCount&) const = default;
};

/// What the kernel says of the persistent memory below a file.
struct Nvdimms {
  std::string names;                       ///< "nmem0, nmem1"; empty: none were found
  std::optional<ShutdownCount> shutdowns;  ///< nullopt: not known
  std::string why_unknown;                 ///< a part of a sentence; empty if it is known
  bool has_durable_caches = false;         ///< eADR: the caches survive a power cut, too
};

/// Looks for the devices below the block device `device`, as in stat::st_dev. What is missing,
/// cannot be read, or is not as the kernel writes it, is not known. `sysfs` is /sys, except in
/// tests. Thread-safety: any thread.
Nvdimms find_nvdimms(std::uint64_t device, const std::string& sysfs);

}  // namespace flugs::pmem
