#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "pmem/medium/line_journal.h"

namespace flugs::pmem {

/// Copies bytes of the pool while other threads may store into them. Each 8-byte word of the copy
/// is as it was at some moment in between. `from` and `bytes` are multiples of 16.
void copy_words(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept;

/// Bytes of a record with these runs.
std::uint64_t record_bytes(std::span<const LineRun> runs) noexcept;
/// Writes all of the record but its checksum to `to`. `base` is the beginning of the pool.
void write_record(std::byte* to, std::span<const LineRun> runs, const std::byte* base) noexcept;

}  // namespace flugs::pmem
