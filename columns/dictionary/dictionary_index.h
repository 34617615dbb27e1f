#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/mutex.h"
#include "columns/dictionary/dictionary_entries.h"
#include "columns/dictionary/dictionary_hints.h"
#include "columns/index/hash_index.h"
#include "columns/index/hash_index_builder.h"

namespace flugs::columns {

/// From a value to its ValueID: an index in DRAM that is rebuilt at restart, or one in the pool
/// (DictionaryHints). It proposes ValueIDs; the entries are the truth.
///
/// Until a rebuild is done, `is_complete` is false, and values are found and added by `find` and
/// `add_late` only, by searching the entries. A value gets one ValueID: it is added under the lock
/// of its place in the index, or, until then, under late_mutex_.
///
/// Thread-safety: any thread, except load and begin_rebuild.
class DictionaryIndex {
 public:
  static constexpr std::uint32_t kNone = DictionaryEntries::kNone;
  using RebuildCounts = DictionaryEntries::RebuildCounts;

  /// `hints` is null for an index in DRAM. Not `is_used`: nothing is looked up or added.
  DictionaryIndex(pmem::Pool& pool, DictionaryEntries& entries, bool is_used,
                  HintIndexLayout* hints, const std::string& owner);

  /// Null when the index is in DRAM.
  DictionaryHints* hints() noexcept { return hints_.get(); }
  const DictionaryHints* hints() const noexcept { return hints_.get(); }
  /// The index in DRAM; only if it is used and there.
  HashIndex& in_dram() noexcept {
    FLUGS_CHECK(in_dram_.has_value());
    return *in_dram_;
  }

  // Opening, as Dictionary describes it.
  Status load() { return hints_ == nullptr ? Status() : hints_->load(); }
  Status begin_rebuild();
  std::uint32_t rebuild_end() const noexcept { return rebuild_end_; }
  void rebuild_range(std::uint32_t first, std::uint32_t end, HashIndexBuilder::Source& source,
                     RebuildCounts& counts, pmem::Persister& persister);
  Status finish_rebuild(const RebuildCounts& counts);
  bool is_complete() const noexcept { return is_complete_.load(std::memory_order_acquire); }
  std::uint32_t count_unproven() const noexcept;

  /// Whether the index has a hint for each entry, or is in DRAM.
  bool has_all_hints() const noexcept { return hints_ == nullptr || !hints_->has_left(); }
  /// Once complete: replaces `out` by candidates for the value's hash. False: the index is damaged
  /// at this hash.
  bool lookup(std::uint64_t hash, Candidates& out) const {
    FLUGS_DCHECK(hints_ != nullptr || in_dram_);
    if (hints_ != nullptr) return hints_->lookup(hash, out);
    in_dram_->lookup(hash, out);
    return true;
  }
  void prefetch(std::uint64_t hash) const noexcept {
    if (!is_complete()) return;
    if (hints_ != nullptr) return hints_->prefetch(hash);
    in_dram_->prefetch(hash);
  }
  /// Whether candidates are values already, so that no caller needs to look at their entries.
  bool is_exact() const noexcept { return is_exact_; }
  /// Whether a candidate is the value, which is not NULL.
  bool is_value(std::uint32_t candidate, const Value& value) const noexcept {
    if (is_exact_) return true;
    if (hints_ != nullptr) return entries_.proves(candidate, value);
    return entries_.holds(candidate, value);
  }
  /// The ValueID of a value that is not NULL; kNone if it has none. At any time.
  std::uint32_t find(const Value& value) const;

  /// The ValueID of a value that is not NULL, which is added unless it has one. Only when complete.
  /// Fails with kOutOfSpace.
  Result<std::uint32_t> find_or_add(const Value& value, std::uint64_t hash,
                                    pmem::Persister& persister);
  /// The same at any time; threads wait for each other until the index is complete.
  Result<std::uint32_t> find_or_add_late(const Value& value, pmem::Persister& persister);

  /// Every entry is whole, and a look-up finds it under its own ValueID only. Fails with kCorrupt.
  Status verify() const;

  /// In DRAM.
  std::size_t memory_bytes() const noexcept { return in_dram_ ? in_dram_->memory_bytes() : 0; }
  void release_all();

 private:
  using Proof = DictionaryEntries::Proof;

  std::uint32_t find(const Value& value, std::uint64_t hash) const;
  void add_late_entries();

  DictionaryEntries& entries_;
  std::unique_ptr<DictionaryHints> hints_;
  std::optional<HashIndex> in_dram_;  // absent with hints or without use; in use when is_complete_
  const bool is_exact_;  // the index in DRAM distinguishes values by their hashes alone
  std::atomic<bool> is_complete_{true};
  std::uint32_t rebuild_end_ = 0;  // end of the entries that existed at opening; constant after
                                   // begin_rebuild
  Mutex late_mutex_;  // held to add a value until is_complete_; rank: before a HashIndex bucket
};

}  // namespace flugs::columns
