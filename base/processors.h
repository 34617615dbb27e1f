#pragma once

#include <cstdint>

namespace flugs {

/// Processors of the machine that were online when this process first asked; at least 1. Asking
/// the kernel takes microseconds, as it opens a file of /sys. Thread-safety: any thread.
std::uint32_t processors() noexcept;

}  // namespace flugs
