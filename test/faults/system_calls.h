#pragma once

#include <cstdint>
#include <functional>

// System calls of this program that fail on command: system_calls.cc puts itself between the
// program, libpmemobj included, and the C library.

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

/// The n-th such call from now on (from 1), and `more` after it, fail with `error`. Thread-safety:
/// while no other thread makes such calls.
void fail_system_call(SystemCall call, std::uint64_t n, int error, std::uint64_t more = 0);
void let_system_calls_work();
/// How many have failed since.
std::uint64_t failed_system_calls();

/// Sees every msync in file mappings of at least `bytes_min` bytes that are made from now on:
/// called before it with false, after it with true; offset and bytes are in the mapping. Empty:
/// nobody looks.
using MsyncObserver = std::function<void(std::uint64_t offset, std::uint64_t bytes, bool done)>;
void observe_msync(std::uint64_t bytes_min, MsyncObserver observer);

/// From now on the clocks go backwards, a second each time that they are read.
void turn_clocks_back(bool on);

}  // namespace flugs::test
