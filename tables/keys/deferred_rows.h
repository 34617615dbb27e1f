#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/check.h"
#include "mvcc/stamps.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

/// The rows that were there at opening, for a unique key whose index in DRAM is made of them while
/// transactions run (tables/opening/index_build_hashed.cc), and how far that has come. Which rows
/// these are, and which key each has, does not change: rows written since opening have later
/// stamps.
/// Thread-safety: any thread.
class DeferredRows {
 public:
  /// The rows below `end` that were committed at `opened_at`.
  DeferredRows(std::uint32_t end, std::uint64_t opened_at) noexcept
      : end_(end), opened_at_(opened_at) {}

  std::uint32_t end() const noexcept { return end_; }
  /// Whether the row was there at opening, not deleted then, and its id not reused since. If a
  /// transaction reads true, the row stays unchanged, except for `deleted`, until the transaction
  /// ends.
  bool has(const mvcc::VersionLayout& version) const noexcept {
    const mvcc::Stamp created = mvcc::load_stamp(version.created);
    if (created == mvcc::kNoStamp || mvcc::is_tag(created) || created > opened_at_) return false;
    const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
    return deleted == mvcc::kNoStamp || mvcc::is_tag(deleted) || deleted > opened_at_;
  }

  /// Rows below it are in the index. Read it before the index.
  std::uint32_t entered() const noexcept { return entered_.load(std::memory_order_acquire); }
  /// Called by one thread.
  void note_entered(std::uint32_t end) noexcept {
    FLUGS_CHECK(end <= end_ && end >= entered_.load(std::memory_order_relaxed));
    entered_.store(end, std::memory_order_release);  // pairs with entered
  }

  /// When the index was first wanted; 0: not yet.
  std::int64_t asked_at() const noexcept { return asked_at_.load(std::memory_order_relaxed); }
  void ask() noexcept {
    if (asked_at() != 0) return;
    std::int64_t nobody = 0;
    asked_at_.compare_exchange_strong(nobody,
                                      std::chrono::steady_clock::now().time_since_epoch().count(),
                                      std::memory_order_relaxed);
  }

 private:
  const std::uint32_t end_;
  const std::uint64_t opened_at_;
  std::atomic<std::uint32_t> entered_{0};
  std::atomic<std::int64_t> asked_at_{0};
};

}  // namespace flugs::engine
