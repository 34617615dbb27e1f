#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "columns/cells/unflushed.h"
#include "columns/index/hash_index.h"
#include "columns/index/hash_index_builder.h"
#include "recovery/phases.h"
#include "tables/catalog/key_kinds.h"
#include "tables/keys/deferred_rows.h"
#include "tables/keys/entry_defaults.h"
#include "tables/keys/key_columns.h"
#include "tables/keys/key_runs.h"

namespace flugs::engine {

/// The entries of a unique key in a hash index in DRAM (KeyKind::kHash): one per key value and
/// record, for the newest version of the row, which leads to the older ones (RowStore::previous).
/// Rows that index runs serve have their entries there. These stay when the row gets a new version
/// or dies.
///
/// The index may be made of the rows that were there at opening while transactions run. Until
/// `finish` it may lack those that have been neither entered nor replaced; look-ups and writers
/// search them in the rows (hash_entries_deferred.cc, decision 0020).
///
/// Its functions are those of KeyEntries.
/// Thread-safety: any thread, except `rebuild`.
class HashEntries final : public EntriesInDram {
 public:
  static constexpr KeyKind kKind = KeyKind::kHash;

  explicit HashEntries(const EntriesOrigin& origin);

  Status insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                columns::Unflushed& unflushed, pmem::Persister& persister);
  Status replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                 mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                 pmem::Persister& persister);
  void undo_replace(std::uint32_t row, std::uint32_t replacement);
  void erase(std::uint32_t row);
  void erase_superseded(std::uint32_t, KnownHash) noexcept {}  // `replace` has taken it out

  bool lookup(std::uint64_t hash, columns::Candidates& out) const;
  bool lookup(std::span<const Value> values, columns::Candidates& out) const;
  bool lookup_outside_runs(std::uint64_t hash, columns::Candidates& out) const {
    index_.lookup(hash, out);
    return true;
  }
  template <typename F>
  bool any_in_runs(std::uint64_t hash, F&& visit) const {
    return runs_.any(hash, visit);
  }
  void prefetch(std::uint64_t hash) const noexcept {
    index_.prefetch(hash);
    runs_.prefetch(hash);
  }
  void prefetch_for_edit(std::uint64_t hash) noexcept { index_.prefetch_for_edit(hash); }
  void prefetch_for_erase(std::uint64_t hash) noexcept { index_.prefetch_for_edit(hash); }

  Status rebuild(recovery::Phases& phases, const char* phase);
  void defer_rows(std::uint32_t end, std::uint64_t opened_at);
  DeferredRows* deferred_rows() const noexcept {
    return __builtin_expect(is_finished_.load(std::memory_order_acquire), 1) ? nullptr
                                                                             : deferred_rows_.get();
  }
  Status enter_deferred(recovery::Phases& phases, const char* phase, LeadsTo leads_to);
  void add_existing(std::uint32_t row, std::uint64_t hash, LeadsTo leads_to,
                    FunctionRef<void(std::uint32_t other)> meet);
  void finish() noexcept { is_finished_.store(true, std::memory_order_release); }

  std::size_t memory_bytes() const noexcept { return index_.memory_bytes(); }
  void release_memory() noexcept { index_.release_memory(); }

 private:
  struct RowSpan {
    std::uint32_t first;
    std::uint32_t end;
  };
  template <typename Wants>
  Status gather(columns::HashIndexBuilder& builder, std::uint64_t sources, RowSpan rows,
                recovery::Phases& phases, const char* phase, Wants&& wants) const;
  void for_each_deferred(const DeferredRows& deferred, std::span<const Value> values,
                         std::uint32_t like, FunctionRef<bool(std::uint32_t row)> visit) const;
  std::uint32_t deferred_row_like(std::uint32_t row) const;

  const KeyColumns& key_;
  const RowStore& rows_;
  const columns::ColumnArray& columns_;
  const KeyRuns& runs_;
  std::atomic<bool> is_finished_;
  // Null: the index was complete when it was opened or made.
  std::unique_ptr<DeferredRows> deferred_rows_;
  columns::HashIndex index_;
};

}  // namespace flugs::engine
