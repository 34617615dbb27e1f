#pragma once

#include <cstdint>
#include <functional>

// Makes system calls of this program fail on command: system_calls.cc stands between the program,
// including libpmemobj, and the C library.

namespace flugs::test {

enum class SystemCall : std::uint8_t {
  kAllocate,  ///< fallocate, posix_fallocate
  kResize,    ///< ftruncate
  kMap,       ///< mmap of a file
  kSync,      ///< fsync, fdatasync
  kMsync,     ///< msync
  kThread,    ///< pthread_create
};
inline constexpr int kSystemCalls = 6;

/// The n-th of these calls from now on (from 1), and `more` after it, fail with `error`.
/// Thread-safety: no other thread may make these calls meanwhile.
void fail_system_call(SystemCall call, std::uint64_t n, int error, std::uint64_t more = 0);
void let_system_calls_work();
/// Number of failed calls since.
std::uint64_t failed_system_calls();

/// Calls `observer` for every msync in file mappings of at least `bytes_min` bytes made from now
/// on: with false before the call and true after it; offset and bytes are relative to the mapping.
/// Empty: none.
using MsyncObserver = std::function<void(std::uint64_t offset, std::uint64_t bytes, bool done)>;
void observe_msync(std::uint64_t bytes_min, MsyncObserver observer);

/// From now on the clocks go backwards, by a second per reading.
void turn_clocks_back(bool on);

}  // namespace flugs::test
