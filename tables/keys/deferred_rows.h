#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "mvcc/stamps.h"
#include "mvcc/visibility.h"

namespace flugs::engine {

/// The rows that were there at opening, for a unique key whose index in DRAM is made of them while
/// transactions go on (tables/opening/index_build_hashed.cc): how far that has come. Which those
/// are, and which key each has, was settled at opening: what is written since has later stamps.
/// Thread-safety: any thread.
class DeferredRows {
 public:
  /// Rows below `end`, those that were committed at `opened_at`.
  DeferredRows(std::uint32_t end, std::uint64_t opened_at) noexcept
      : end_(end), opened_at_(opened_at) {}

  std::uint32_t end() const noexcept { return end_; }
  /// Whether it was there at opening, not deleted, and nothing else has taken its place. A
  /// transaction that has read that finds the row unchanged, but for `deleted`, until it ends.
  bool has(const mvcc::VersionLayout& version) const noexcept {
    const mvcc::Stamp created = mvcc::load_stamp(version.created);
    if (created == mvcc::kNoStamp || mvcc::is_tag(created) || created > opened_at_) return false;
    const mvcc::Stamp deleted = mvcc::load_stamp(version.deleted);
    return deleted == mvcc::kNoStamp || mvcc::is_tag(deleted) || deleted > opened_at_;
  }

  /// Those below it are in; to be read before the index is looked at.
  std::uint32_t entered() const noexcept { return entered_.load(std::memory_order_acquire); }
  /// One thread.
  void note_entered(std::uint32_t end) noexcept {
    entered_.store(end, std::memory_order_release);  // pairs with entered
  }

  /// When somebody first wanted the index; 0: nobody has.
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
