#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "flugs/status.h"

namespace flugs::pmem {

/// Whole lines of the pool, one behind the other.
struct LineRun {
  const std::byte* begin;
  std::uint64_t lines;
};

/// A place in a journal: the bytes that were appended before it since the journal was made.
using JournalPlace = std::uint64_t;

/// For LineJournal::want_durable: no limit. The journal writes the record when it needs the memory.
inline constexpr std::chrono::microseconds kSometime = std::chrono::microseconds::max();

/// Work that a journal has done since it was opened.
struct JournalCounters {
  std::uint64_t records = 0;
  std::uint64_t record_bytes = 0;  ///< without pads
  std::uint64_t writes = 0;        ///< of the device, each waited for
  std::uint64_t written_bytes = 0;
  std::uint64_t direct_writes = 0;  ///< of pieces of the pool, past the journal
  std::uint64_t direct_bytes = 0;
  std::uint64_t soon = 0;  ///< calls of want_durable
  std::uint64_t late = 0;  ///< of these, found durable later than wanted, or not at all
};

/// Makes lines durable on a medium that cannot be written line by line. Places are in one order for
/// all threads: what lies before a durable place is durable. pmem/journal has the one that is used.
class LineJournal {
 public:
  virtual ~LineJournal() = default;

  /// Appends images of the lines, as they are now or later, and returns the place behind them.
  /// Waits while the journal is full. After a failure of its file nothing is appended any more.
  /// Thread-safety: any thread. Must not be called by the thread that makes room in the journal.
  virtual JournalPlace append(std::span<const LineRun> runs) noexcept = 0;
  /// Returns when everything before `place`, which append has returned, is durable. kIoError,
  /// kOutOfSpace: the journal's file cannot be written, and a part may be durable.
  /// Thread-safety: any thread.
  virtual Status wait_durable(JournalPlace place) = 0;
  /// The same for all that was appended so far.
  virtual Status wait_all_durable() = 0;
  /// Whether everything before `place` is durable. Thread-safety: any thread.
  virtual bool is_durable(JournalPlace place) const noexcept = 0;
  /// What lies before it is durable. It only grows. Thread-safety: any thread.
  virtual JournalPlace durable() const noexcept = 0;
  /// Sees to it that everything before `place` is durable `within` that time, if the device can do
  /// it. Waits only if the system refuses a thread. Fails as wait_durable, which may show later.
  /// Thread-safety: any thread.
  virtual Status want_durable(JournalPlace place, std::chrono::microseconds within) = 0;
  /// Whether what was appended outlives the process, before it is durable.
  virtual bool outlives_process() const noexcept = 0;
  /// Calls `callback` once: when everything before `place` is durable, or cannot become it.
  /// Thread-safety: any thread.
  virtual void when_durable(JournalPlace place, std::function<void(const Status&)> callback) = 0;
  /// The place behind all that was appended so far. Thread-safety: any thread.
  virtual JournalPlace end() const noexcept = 0;
  virtual JournalCounters counters() const noexcept = 0;
  /// Whether something new may begin that will append `bytes`: not after a failure of the journal's
  /// file, nor while checkpoints fail and the journal is nearly full; waits while checkpoints run
  /// and the journal is nearly full. Thread-safety: any thread.
  virtual Status check_writable(std::uint64_t bytes) = 0;
};

}  // namespace flugs::pmem
