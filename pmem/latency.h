#pragma once

#include <cstdint>

namespace flugs::pmem {

/// Keeps this thread busy for about `ns` nanoseconds.
void spin_ns(std::uint64_t ns) noexcept;

/// Whether a read of the line at `address` would miss a private direct-mapped cache of 2^18 lines
/// of 64 bytes (16 MB, the last-level share of a core in SOFORT's machine); enters it. Per thread.
bool model_cache_miss(const void* address) noexcept;

}  // namespace flugs::pmem
