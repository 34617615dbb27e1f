#pragma once

#include <cstdint>
#include <string>

namespace flugs::bench {

/// Where and of what a figure was made.
struct Environment {
  std::string commit;  ///< git revision that was configured, "unknown" outside of a checkout
  std::string cpu;     ///< model name
  unsigned cores = 0;  ///< usable_cores
  std::uint64_t memory_bytes = 0;
  std::string kernel;      ///< name and release
  std::string huge_pages;  ///< state of huge pages for shared memory and for anonymous memory
  std::string compiler;
  std::string build;  ///< "release" or "debug"
};

/// Reads files of the kernel: a quarter of a millisecond.
Environment environment();

/// Processors that this process may run on, at least 1. Costs a system call.
unsigned usable_cores();

/// DRAM of the process itself: anonymous resident pages. The pages of the pool are not among them.
std::uint64_t dram_bytes();

/// Resident pages of the process, those of the pool included. From now on resident_peak_bytes()
/// counts anew, if the kernel allows it.
std::uint64_t begin_resident_peak();
std::uint64_t resident_peak_bytes();

/// Memory that the machine could still give without swapping; tmpfs takes from it, too.
std::uint64_t available_memory_bytes();

/// Page faults of this process so far.
struct PageFaults {
  std::uint64_t minor = 0;
  std::uint64_t major = 0;
};
PageFaults page_faults();

}  // namespace flugs::bench
