#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "base/mutex.h"
#include "columns/dictionary/dictionary_entries.h"
#include "columns/index/hint_index.h"

namespace flugs::columns {

/// The index of a dictionary in the pool (decision 0015), and how its hints become durable. Below
/// `kept_end`, entries and their hints are durable, and opening does not examine them. Hints are
/// written before their entries, so a durable entry has its hint, except for entries that opening
/// found from `kept_end` on: up to `left_end` hints may be missing until keep or enter_left has
/// made them. Until then, a look-up searches these entries.
///
/// Thread-safety: any thread, except load and recover.
class DictionaryHints {
 public:
  /// Roughly the most entries that opening examines when no thread keeps hints.
  static constexpr std::uint32_t kTailMax = 64;

  DictionaryHints(pmem::Pool& pool, HintIndexLayout& layout, DictionaryEntries& entries,
                  const std::string& owner);

  /// Opening, step 1: as HintIndex::load.
  Status load() { return index_.load(); }
  /// Opening, before step 2: fails with kCorrupt without a whole index.
  Status check_loaded() const;
  /// Opening, step 2: does all that must be done before the first answer. Entries from `kept_end`
  /// on may lack hints: keep makes them later. Fails with kCorrupt.
  Status recover(DictionaryEntries::RebuildCounts& counts, pmem::Persister& persister);
  /// The number of entries to verify.
  std::uint32_t count_unproven() const noexcept;

  /// False: the index is damaged at this hash.
  bool lookup(std::uint64_t hash, Candidates& out) const { return index_.lookup(hash, out); }
  void prefetch(std::uint64_t hash) const noexcept { index_.prefetch(hash); }
  /// The ValueID of the value, which is added unless it has one. Fails with kOutOfSpace.
  Result<std::uint32_t> find_or_add(const Value& value, std::uint64_t hash,
                                    pmem::Persister& persister);
  /// NULL's ValueID, whose entry is not written yet; becomes durable as hints do.
  void store_null_code(std::uint32_t id) noexcept;

  std::uint64_t kept_end() const noexcept;
  /// 0: no entry lacks its hint.
  std::uint32_t left_end() const noexcept { return left_end_.load(std::memory_order_acquire); }
  /// With this many entries whose hints are not known to be durable, committing transactions keep
  /// hints.
  void set_tail_max(std::uint32_t entries) noexcept { tail_max_ = entries; }
  bool wants_keeping() const noexcept;
  /// Makes the hints of some durable entries durable. Also makes entries durable that are not known
  /// to be, if they are old or none was added since the last call. Returns true if more are left.
  /// While hints are left from opening, makes at most `left_at_most` of these instead. kKeptMax
  /// take a few milliseconds, kEnteredMax of those left about half a millisecond.
  static constexpr std::uint32_t kKeptMax = 1u << 16;
  static constexpr std::uint32_t kEnteredMax = 64;
  bool keep(pmem::Persister& persister, std::uint32_t at_most = kKeptMax,
            std::uint32_t left_at_most = kKeptMax) noexcept;
  /// Makes the hints left from opening, after any thread that is already doing it; true: more are
  /// left. If the index has no room for one of them, it and all behind it stay left, and look-ups
  /// search their entries.
  bool enter_left(pmem::Persister& persister, std::uint32_t at_most = kKeptMax) noexcept;
  bool has_left() const noexcept { return left_end() != 0; }

  /// Checks the parts of the index that opening has not examined. Fails with kCorrupt.
  Status check_index() { return index_.check_directory(); }
  /// Whether check_index takes more than a moment.
  bool has_much_to_check() const noexcept { return index_.has_much_to_check(); }
  /// Verifies up to `at_most` of the entries that opening skipped because their hints are durable;
  /// `has_more`: some are left. Fails with kCorrupt, and then on each call. One thread at a time.
  Status check_entries(std::uint32_t at_most, bool& has_more);
  bool has_entries_to_check() const noexcept {
    return unchecked_.load(std::memory_order_acquire) < unchecked_end_;
  }

  std::uint64_t bytes_in_pool() const noexcept { return index_.bytes_in_pool(); }
  void release_all() { index_.release_all(); }
  void add_pages(pmem::WarmList& pages) const { index_.add_pages(pages); }

 private:
  using Proof = DictionaryEntries::Proof;
  static constexpr std::uint32_t kNone = DictionaryEntries::kNone;

  Status recover_null(std::uint32_t durable_end);
  Status check_youngest_texts(std::uint32_t end) const;
  bool keep_entries(pmem::Persister& persister, std::uint32_t at_most) noexcept;
  bool keep_left(pmem::Persister& persister, std::uint32_t at_most) noexcept;
  std::uint32_t add(std::uint32_t first, std::uint32_t end, pmem::Persister& persister) noexcept;
  void publish(std::uint32_t first, std::uint32_t end, pmem::Persister& persister) noexcept;
  void flush(std::uint32_t first, std::uint32_t end, pmem::Persister& persister,
             pmem::Label label) const noexcept;

  DictionaryEntries& entries_;
  HintIndexLayout& layout_;  // durable_end, null_code; the rest is the index's
  HintIndex index_;
  // Set to 0, under keep_mutex_, when all entries have their hints.
  std::atomic<std::uint32_t> left_end_{0};
  std::atomic<std::uint32_t> tail_max_{kTailMax};
  std::atomic<std::uint32_t> unchecked_{0};  // entries from here to unchecked_end_ are not verified
  std::uint32_t unchecked_end_ = 0;          // constant after recover
  Mutex keep_mutex_;                         // held to keep hints; rank: before a HintIndex
  std::uint32_t quiet_count_ = 0;  // under keep_mutex_: `count` at the last call of keep_entries
};

}  // namespace flugs::columns
