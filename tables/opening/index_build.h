#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "base/mutex.h"
#include "flugs/function_ref.h"
#include "flugs/recovery_report.h"
#include "flugs/status.h"
#include "mvcc/transaction_slots.h"
#include "recovery/phases.h"
#include "tables/keys/deferred_indexes.h"
#include "tables/keys/table_keys.h"

namespace flugs::engine {

class RowSweep;
struct TableData;

/// Makes a table's indexes in DRAM. Opening makes them at once, or defers them. Deferred ones are
/// made while transactions go on, by a thread of the database, or by the first caller that needs
/// them. Until then look-ups and ranges look at the rows that an index may lack (decision 0020).
///
/// Invariants: which rows an index may lack is settled at opening. Writers enter what they write
/// since. One thread at a time makes indexes of a table; the mutex also keeps away threads that
/// check hints or free former editions. After a failure nothing can be written to the table any
/// more.
///
/// Thread-safety: any thread, except the functions whose comment says "opening".
class IndexBuild final {
 public:
  IndexBuild(const TableData& data, RowSweep& sweep) noexcept : data_(data), sweep_(sweep) {}
  IndexBuild(const IndexBuild&) = delete;
  IndexBuild& operator=(const IndexBuild&) = delete;

  bool has_keys_in_dram() const noexcept;
  /// Opening: finds out how many entries the dictionaries have. Fails with kCorrupt.
  Status begin_dictionaries();
  /// Which indexes have to be made. After begin_dictionaries.
  DeferredIndexes find_indexes() const noexcept;

  /// Opening: defers these; `threads` make them later. When `stops` becomes true that ends soon.
  void defer(const DeferredIndexes& indexes, std::uint32_t threads, mvcc::TransactionSlots& slots,
             const std::atomic<bool>& stops) noexcept;
  /// Whether a thread makes the indexes unasked. Call it before the table is used.
  void set_builds_later(bool builds_later) noexcept;
  /// Whether some of these kinds are still deferred: if not, nothing need be prepared.
  bool is_deferred(std::uint8_t kinds = DeferredIndexes::kAllIndexes) const noexcept {
    return __builtin_expect((deferred_.load(std::memory_order_acquire) & kinds) != 0, 0);
  }
  // Before values of a key of a table with deferred indexes are looked up, or a range of it, and
  // before anything is written. Asks for the indexes that it could use. If there is no thread that
  // makes them, does that itself, or waits for the thread that is at it. Fails with kCorrupt.
  Status prepare_lookup(std::size_t key) noexcept;
  Status prepare_range() noexcept;
  Status prepare_write() noexcept;
  /// Makes the indexes of these kinds that are left, one thread at a time; the others wait. Fails
  /// with kCorrupt (for good: then nothing can be written), kNotFound (the table is being dropped),
  /// kCancelled (the database is being closed).
  Status build(std::uint8_t kinds) noexcept;
  /// When indexes that are left were first wanted, by a clock of this class; 0: not yet.
  std::int64_t asked_at() const noexcept;
  /// What opening deferred, and how much of it is left.
  const DeferredIndexes& deferred_at_opening() const noexcept { return at_opening_; }
  DeferredIndexes still_deferred() const noexcept;
  bool has_failed() const noexcept { return has_failed_.load(std::memory_order_relaxed); }
  double build_ms() const noexcept { return us_.load(std::memory_order_relaxed) / 1000.0; }

  /// Whether `newer` is a later version of the record of `row`, which the snapshot sees, and no
  /// version between them has another key.
  bool leads_to(const KeyIndex& key, std::uint32_t newer, std::uint32_t row,
                const mvcc::Visibility& snapshot) const;
  /// Visits the rows in the range for which `is_wanted` holds, in order, until `visit` returns
  /// false. `is_wanted` may hold only for rows that some snapshot from `oldest_snapshot` on sees.
  void walk(const KeyIndex& key, const KeyRange& range, std::uint64_t oldest_snapshot,
            FunctionRef<bool(std::uint32_t row)> is_wanted,
            FunctionRef<bool(std::uint32_t row)> visit) const;

  /// Held while indexes are made, hints checked, or former editions given back.
  Mutex& mutex() noexcept { return mutex_; }
  /// On return no thread makes indexes of the table. If it is dropped, none will.
  void wait() { const std::lock_guard guard(mutex_); }
  /// Opening's snapshot need not be held back for this table any more.
  void release_opening() noexcept;

 private:
  static constexpr const char* kIndexesPhase = "indexes";

  bool waits_for_all() const noexcept { return !builds_later_ || has_failed(); }
  void ask_for(KeyMask keys) noexcept;
  std::uint64_t unindexed_entries() const noexcept;
  Status sweep_for_build(recovery::Phases& phases);
  Status build_hash(recovery::Phases& phases);
  KeyIndex* next_to_enter() const noexcept;
  Status build_ordered(recovery::Phases& phases);
  Status enter_ordered(KeyIndex& key, recovery::Phases& phases);
  Status build_dictionaries(recovery::Phases& phases, RecoveryReport& report);

  const TableData& data_;
  RowSweep& sweep_;
  std::atomic<std::uint8_t> deferred_{DeferredIndexes::kNoIndexes};
  bool builds_later_ = false;
  std::atomic<bool> has_failed_{false};
  std::atomic<bool> keeps_opening_{false};
  std::uint32_t threads_ = 0;
  std::atomic<std::uint64_t> ordered_since_{0};  // snapshots from it on find ordered keys complete
  DeferredIndexes at_opening_;
  const std::atomic<bool>* stops_ = nullptr;
  mvcc::TransactionSlots* slots_ = nullptr;  // when indexes were deferred
  std::atomic<double> us_{0};
  std::atomic<std::int64_t> asked_at_{0};
  Mutex mutex_;  // protects status_; rank: after the table's merge_mutex
  Status status_;
};

}  // namespace flugs::engine
