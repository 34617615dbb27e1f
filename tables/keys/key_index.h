#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/published.h"
#include "columns/column/column.h"
#include "columns/index/hash_index.h"
#include "columns/index/hint_index.h"
#include "columns/index/ordered_index.h"
#include "flugs/schema.h"
#include "mvcc/visibility.h"
#include "tables/keys/deferred_rows.h"
#include "tables/keys/index_runs.h"
#include "tables/keys/key_compare.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

class KeyPrefix;

/// Bounds of a walk: values of the first columns of a key, checked and normalised. Empty: no bound.
struct KeyRange {
  std::span<const Value> lower;
  bool lower_inclusive = true;
  std::span<const Value> upper;
  bool upper_inclusive = true;

  static KeyRange equal(std::span<const Value> values) noexcept {
    return {values, true, values, true};
  }
};

/// One key of a table. Its indexes are in DRAM, except for the rows that the table's index runs
/// serve. Those rows have their entries in the runs, which stay there when the row gets a new
/// version or dies. A unique key has a hash index with an entry per key value and record: the
/// newest version of the row, which leads to the older ones (RowStore::previous). An ordered key
/// has an entry per version in a B+-tree. A row with NULL in a hashed column has no entry in the
/// hash index: there may be any number of such rows, all with the same hash.
///
/// With hints (IndexMode::kHint) the hash index is in the pool. It has an entry for each version
/// that is not dead, but at most two per record that is updated, because a version that a crash
/// makes the newest again must be found. An entry may name a row that has been reused since.
///
/// An index never decides what is visible: it gives rows to check.
/// Thread-safety: any thread, except rebuilding.
class KeyIndex final : public columns::OrderedIndexCompare {
 public:
  /// kOpening: made when the table is opened. kAdded: made of the existing rows while transactions
  /// run (KeyBuild). No run has entries of an added key before the table is opened again, and until
  /// it is finished it may lack rows that are replaced.
  enum class Origin : std::uint8_t { kOpening, kAdded };

  /// `number` is the key's number in the table; `hints` null: the hash index is in DRAM.
  KeyIndex(pmem::Pool& pool, columns::HintIndexLayout* hints, const std::string& table,
           const RowStore& rows, const IndexRuns& runs, std::size_t number,
           const columns::ColumnArray& columns, const KeySchema& schema,
           std::vector<std::uint16_t> key_columns, Origin origin = Origin::kOpening);

  const std::string& name() const noexcept { return name_.get(); }
  /// One thread at a time.
  void rename(const std::string& name) {
    if (name != name_.get()) name_.put(name);
  }
  /// For messages: "a = 1, b = 'x'".
  std::string describe(std::span<const Value> values) const;
  std::string describe(std::uint32_t row) const;
  std::span<const std::uint16_t> columns() const noexcept { return compare_.columns(); }
  bool is_unique() const noexcept { return unique_; }
  bool is_ordered() const noexcept { return ordered_ != nullptr; }
  bool has_hints() const noexcept { return hints_ != nullptr; }
  /// Whether index runs have hash tables for it.
  bool is_hashed_in_runs() const noexcept { return unique_ && hints_ == nullptr; }
  std::size_t hashed_columns() const noexcept { return hashed_columns_; }
  /// Whether values for this key may have to be normalised first.
  bool needs_normalising() const noexcept {
    return needs_normalising_.load(std::memory_order_relaxed);
  }
  void set_needs_normalising() noexcept {
    needs_normalising_.store(true, std::memory_order_relaxed);
  }
  bool has_column(std::size_t column) const noexcept;
  /// Whether the key has entries in runs, for the rows that these serve. Set at opening.
  bool uses_runs() const noexcept { return uses_runs_; }
  void set_uses_runs(bool uses_runs) noexcept { uses_runs_ = uses_runs; }
  /// Whether the row's entries are in a run, and not in DRAM.
  bool is_served(std::uint32_t row) const noexcept { return uses_runs_ && runs_.serves(row); }

  /// Whether the values of the key's first columns equal `values` (checked and normalised).
  bool matches(std::uint32_t row, std::span<const Value> values) const noexcept {
    return compare_.is_equal(rows_.view(row), values);
  }
  /// Whether two rows have the same key (NULL equals NULL).
  bool same_key(std::uint32_t a, std::uint32_t b) const noexcept {
    return compare_.is_same(rows_.view(a), rows_.view(b));
  }
  bool has_null(std::uint32_t row) const noexcept;
  /// Whether the hash index has an entry for this row, or for rows with these values.
  bool is_hashed(std::uint32_t row) const noexcept;
  bool is_hashed(std::span<const Value> values) const noexcept;
  std::uint64_t hash_of(std::uint32_t row) const noexcept;
  std::uint64_t hash_of(std::span<const Value> values) const noexcept;
  /// Hash of all columns of the key.
  std::uint64_t record_hash(std::uint32_t row) const noexcept;

  /// Puts a new version into the index; no newer version of its record may have had the key. Fails
  /// with kAlreadyExists or kConflict when the key is unique and taken, or may turn out to be
  /// taken. `hash` is hash_of(row). `unflushed` takes what must be durable before the row commits.
  /// Also fails with kOutOfSpace, and so does `replace`.
  Status insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                columns::Unflushed& unflushed, pmem::Persister& persister);
  /// Whether `insert` of a row with these values of the key (normalised) would be refused now.
  Status check_free(std::span<const Value> values, const mvcc::Visibility& visibility,
                    columns::Candidates& scratch) const;
  /// Replaces a version in the index by one that was made from it and has the same key. Fails with
  /// kCorrupt when the index lacks the old version at its key: the pool was damaged. `own_tag` is
  /// the tag of the calling transaction. `is_first` becomes true when that transaction wrote `row`
  /// before the key was begun: then the key has no older version of the transaction's, and `erase`
  /// must undo the call instead of undo_replace.
  Status replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                 mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                 pmem::Persister& persister);
  void undo_replace(std::uint32_t row, std::uint32_t replacement);
  /// Removes `row` if it is in the index.
  void erase(std::uint32_t row);
  /// hash_of(row), if known: the row's key may be out of the caches by now.
  using KnownHash = std::optional<std::uint64_t>;
  /// The same for a row that `replace` has replaced.
  void erase_superseded(std::uint32_t row, KnownHash hash);

  /// Sets `out` to the rows to check, those that are not in runs first. False: some may be missing,
  /// because of hint_damage().
  bool lookup(std::uint64_t hash, columns::Candidates& out) const;
  /// The same in two parts, as most look-ups need only the first.
  bool lookup_outside_runs(std::uint64_t hash, columns::Candidates& out) const {
    FLUGS_DCHECK(unique_);
    if (hints_ == nullptr) {
      hash_->lookup(hash, out);
      return true;
    }
    const bool is_whole = hints_->lookup(hash, out);
    out.keep_if([this](std::uint32_t row) { return rows_.exists(row); });
    return is_whole;
  }
  template <typename F>
  bool any_in_runs(std::uint64_t hash, F&& visit) const {
    return hints_ == nullptr && uses_runs_ && runs_.any(number_, hash, visit);
  }
  void prefetch(std::uint64_t hash) const noexcept {
    if (hints_ != nullptr) return hints_->prefetch(hash);
    hash_->prefetch(hash);
    runs_.prefetch(number_, hash);
  }
  void prefetch_for_edit(std::uint64_t hash) noexcept {
    if (hints_ != nullptr) return hints_->prefetch_for_edit(hash);
    hash_->prefetch_for_edit(hash);
  }
  void prefetch_for_erase(std::uint64_t hash) noexcept {
    if (hints_ != nullptr) return hints_->prefetch_for_erase(hash);
    hash_->prefetch_for_edit(hash);
  }

  /// Opening, when there are hints: load claims them; recover, after claims are finished, completes
  /// them.
  Status load() { return hints_ == nullptr ? Status() : hints_->load(); }
  void recover(pmem::Persister& persister) {
    if (hints_ != nullptr) hints_->recover(persister);
  }
  /// For rebuilding, when there are no hints.
  columns::HashIndex& hash() noexcept {
    FLUGS_CHECK(hash_);
    return *hash_;
  }

  // The hash index may be made of the rows that were there at opening while transactions run. Until
  // `finish` it may lack those rows that have been neither entered nor replaced
  // (tables/keys/key_deferred_lookup.cc).
  void defer_rows(std::uint32_t end, std::uint64_t opened_at);
  /// Null: no rows were left for later, or the index is finished.
  DeferredRows* deferred_rows() const noexcept {
    return __builtin_expect(is_finished_.load(std::memory_order_acquire), 1) ? nullptr
                                                                             : deferred_rows_.get();
  }
  /// `lookup`, and also the rows that the index may lack, each once. `values` are those that
  /// hash_of takes, and as many more as are known.
  bool lookup(std::span<const Value> values, columns::Candidates& out) const;

  /// While the key is made: enters an existing version into the hash index, unless the index has it
  /// already, or a newer version that leads to it: `leads_to(newer)`. Calls `meet(row)` for each
  /// row of another record with the same key, if the key must not repeat. `hash` is hash_of(row).
  void add_existing(std::uint32_t row, std::uint64_t hash,
                    FunctionRef<bool(std::uint32_t newer)> leads_to,
                    FunctionRef<void(std::uint32_t other)> meet);
  /// The same for the ordered index; entries may be in any order, and are consumed.
  void add_existing_ordered(std::vector<columns::OrderedEntry>& entries);
  /// Called when all rows are in.
  void finish() noexcept { is_finished_.store(true, std::memory_order_release); }

  /// -1, 0, 1: the row's key is before, inside or behind the range.
  int place_of(std::uint32_t row, const KeyRange& range) const noexcept;
  /// Calls visit(row) with every entry whose key is in the range, in order. When the index in DRAM
  /// is not complete, `in_dram` has its entries of the range, in any order; they are consumed.
  void walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
            std::vector<columns::OrderedEntry>* in_dram = nullptr) const;

  /// Opening: makes an ordered key from all live rows at once.
  void build_ordered(std::span<const std::uint32_t> rows);
  columns::OrderedEntry ordered_entry(std::uint32_t row) const noexcept;
  Status check_ordered(std::size_t expected_entries) const;

  /// False: the hints could not be loaded; an audit goes on without them.
  bool has_loaded_hints() const noexcept { return hints_ != nullptr && hints_->is_loaded(); }
  Status hint_damage() const { return hints_ == nullptr ? Status() : hints_->damage(); }
  /// Checks the parts of the hints that opening has not read. Fails with kCorrupt.
  Status check_hints() { return hints_ == nullptr ? Status() : hints_->check_directory(); }

  /// Bytes in DRAM and in the pool.
  std::size_t memory_bytes() const noexcept;
  bool has_much_to_check() const noexcept {
    return hints_ != nullptr && hints_->has_much_to_check();
  }
  void add_pages(pmem::WarmList& pages) const {
    if (hints_ != nullptr) hints_->add_pages(pages);
  }
  std::uint64_t hint_bytes() const noexcept {
    return hints_ == nullptr ? 0 : hints_->bytes_in_pool();
  }
  /// Called when the table was dropped: no entry is left, and only prefetching remains possible.
  void release_memory();
  int rows(std::uint32_t a, std::uint32_t b) const override;

 private:
  std::uint64_t hash_of(std::uint32_t row, std::size_t count) const noexcept;
  void sort(std::vector<columns::OrderedEntry>& entries) const;
  void visit_in_order(std::vector<columns::OrderedEntry>& entries,
                      columns::OrderedIndex::Visit visit) const;
  KeyPrefix prefix_of(std::span<const Value> values) const noexcept;
  int place_of(const columns::OrderedEntry& entry, const KeyRange& range, const KeyPrefix& lower,
               const KeyPrefix& upper) const noexcept;
  Value value(std::uint32_t row, std::size_t key_position) const noexcept;
  Status judge(std::uint32_t candidate, const mvcc::Visibility& visibility) const;
  Status insert_hint(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                     columns::Unflushed& unflushed, pmem::Persister& persister);
  Status replace_hint(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                      columns::Unflushed& unflushed, pmem::Persister& persister);
  void erase_hint(std::uint32_t keyed, std::uint32_t row, KnownHash hash);
  Status missing(std::uint32_t row) const;
  void for_each_deferred(const DeferredRows& deferred, std::span<const Value> values,
                         std::uint32_t like, FunctionRef<bool(std::uint32_t row)> visit) const;
  std::uint32_t deferred_row_like(std::uint32_t row) const;

  const RowStore& rows_;
  const IndexRuns& runs_;
  const std::size_t number_;
  bool uses_runs_;
  std::atomic<bool> is_finished_;
  const columns::ColumnArray& columns_;
  Published<std::string> name_;
  const KeyCompare compare_;
  bool unique_;
  std::atomic<bool> needs_normalising_{false};
  bool hashes_nullable_ = false;
  std::unique_ptr<DeferredRows>
      deferred_rows_;  // null: the index was complete when it was opened or made
  std::size_t hashed_columns_;
  std::optional<columns::HashIndex> hash_;  // none when there are hints
  std::unique_ptr<columns::HintIndex> hints_;
  std::unique_ptr<columns::OrderedIndex> ordered_;
};

}  // namespace flugs::engine
