#pragma once

#include <cstdint>

namespace flugs {

/// Bytes of memory that this process may use, page cache included: those of the machine, or of the
/// control groups that the process is in, if that is less. Reads some files of /proc and /sys.
/// Thread-safety: any thread.
std::uint64_t usable_memory_bytes();

}  // namespace flugs
