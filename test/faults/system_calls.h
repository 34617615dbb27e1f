#pragma once

#include <cstdint>
#include <functional>
#include <string>

// Makes system calls of this program fail on command: system_calls.cc stands between the program,
// including libpmemobj, and the C library.

namespace flugs::test {

enum class SystemCall : std::uint8_t {
  kAllocate,  ///< fallocate, posix_fallocate
  kResize,    ///< ftruncate
  kMap,       ///< mmap of a file
  kSync,      ///< fsync, fdatasync, sync_file_range
  kWrite,     ///< pwrite, pwritev2
  kThread,    ///< pthread_create
};
inline constexpr int kSystemCalls = 6;

/// The n-th of these calls from now on (from 1), and `more` after it, fail with `error`.
/// Thread-safety: no other thread may make these calls meanwhile.
void fail_system_call(SystemCall call, std::uint64_t n, int error, std::uint64_t more = 0);
void let_system_calls_work();
/// Number of failed calls since.
std::uint64_t failed_system_calls();

/// From now on the device stands still: pwrite and pwritev2 begin only when this is taken back.
/// `held_writes` is the number of those that wait.
void hold_writes(bool on);
int held_writes();

/// What happens to a pool's file, or to its journal.
struct FileEvent {
  enum class Kind : std::uint8_t {
    kWritten,     ///< these bytes are in the file; a power cut may take any of them back
    kBeforeSync,  ///< all bytes written so far will be durable
    kSynced,      ///< they are
  };
  Kind kind;
  bool is_journal;
  std::uint64_t offset;
  std::uint64_t bytes;  ///< 0: the whole file
};
/// Calls `observer` for each of them from now on, with one call at a time. Empty: none.
using FileObserver = std::function<void(const FileEvent&)>;
void observe_files(const std::string& pool_path, FileObserver observer);

/// From now on the clocks go backwards, by a second per reading.
void turn_clocks_back(bool on);

}  // namespace flugs::test
