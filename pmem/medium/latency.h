#pragma once

#include <cstdint>

namespace flugs::pmem {

/// Keeps this thread busy for about `ns` nanoseconds.
void spin_ns(std::uint64_t ns) noexcept;

/// Converts nanoseconds to ticks of the time-stamp counter. The first call takes 2 ms to measure
/// them.
std::int64_t ticks_of_ns(std::int64_t ns) noexcept;

}  // namespace flugs::pmem
