#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "mvcc/slot_mirror.h"
#include "pmem/medium/line_journal.h"

namespace flugs::mvcc {

/// On a medium with a journal: up to which time-stamp no power cut takes a commit back. Commits
/// that are durable soon are visible before, so the snapshots of some readers are behind the clock.
/// docs/concurrency.md has the argument.
/// Thread-safety: any thread, except connect; note by the slot's owner.
class DurableTime {
 public:
  /// Before other threads use it. `journal`: null, if every visible commit is durable. `now`: all
  /// commits so far are durable.
  void connect(const pmem::LineJournal* journal, std::span<const SlotMirror> mirrors,
               std::uint64_t now) noexcept;
  bool is_behind_clock() const noexcept { return journal_ != nullptr; }

  /// The commit of the slot at `timestamp` becomes visible next. It is durable when everything
  /// before `end` is. `group` is a word of the slot's owner, 0 at first.
  void note(SlotMirror& mirror, std::uint32_t& group, std::uint64_t timestamp,
            pmem::JournalPlace end) const noexcept;

  /// A time-stamp up to `now`, which the clock has shown before: every commit at or below it is
  /// durable, or never becomes visible. Takes no lock and does not wait; goes through all slots.
  std::uint64_t look(std::uint64_t now) const noexcept;
  /// No durable snapshot taken after the call is below the result. Its caller must have a heavy
  /// barrier between this and a look at the snapshots that are registered.
  std::uint64_t raise_floor(std::uint64_t now) noexcept;
  /// All that `look` finds may be below it; all commits at or below it are durable.
  std::uint64_t floor() const noexcept { return floor_.load(std::memory_order_acquire); }

 private:
  const pmem::LineJournal* journal_ = nullptr;
  std::span<const SlotMirror> mirrors_;
  std::atomic<std::uint64_t> floor_{0};
};

}  // namespace flugs::mvcc
