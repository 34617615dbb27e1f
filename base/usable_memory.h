#pragma once

#include <cstdint>
#include <string>

namespace flugs {

/// Bytes of memory that this process may use, page cache included: those of the machine, or of the
/// control groups that the process is in, if that is less. Reads some files of /proc and /sys.
/// Thread-safety: any thread.
std::uint64_t usable_memory_bytes();
/// The same with other files in the place of /proc/self/cgroup and /sys/fs/cgroup, for tests.
std::uint64_t usable_memory_bytes(const std::string& groups_of_process, const std::string& groups);

}  // namespace flugs
