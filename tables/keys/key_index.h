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

/// Bounds of a walk: values of the first columns of a key, checked and normalised. None: no bound.
struct KeyRange {
  std::span<const Value> lower;
  bool lower_inclusive = true;
  std::span<const Value> upper;
  bool upper_inclusive = true;

  static KeyRange equal(std::span<const Value> values) noexcept {
    return {values, true, values, true};
  }
};

/// One key of a table: in DRAM, but for the rows that the table's index runs serve. Those have
/// their entries there, which stay when the row gets a new version or dies. A unique key has a hash
/// index with an entry per key value and record: the newest version of the row, from which older
/// ones are reached (RowStore::previous). An ordered key has an entry per version in a B+-tree. A
/// row with NULL in a hashed column has no entry in the hash index: there may be any number of
/// them, all of one hash.
///
/// With hints (IndexMode::kHint) the hash index is in the pool and has an entry for each version
/// that is not dead, but at most two per record that is updated: what a crash would make the newest
/// again must be found. There may be entries of rows that are something else by now.
///
/// An index never decides what is visible: it gives rows to look at.
/// Thread-safety: any thread, except rebuilding.
class KeyIndex final : public columns::OrderedIndexCompare {
 public:
  /// Made when the table is opened; or while transactions go on, of rows that are there (KeyBuild):
  /// then no run has its entries before the table is opened again, and until it is finished it may
  /// lack rows that are replaced.
  enum class Origin : std::uint8_t { kOpening, kAdded };

  /// `number` is the key's among those of the table; `hints` null: the hash index is in DRAM.
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
  /// Whether values for this key may have to be brought into their one form first.
  bool needs_normalising() const noexcept {
    return needs_normalising_.load(std::memory_order_relaxed);
  }
  void set_needs_normalising() noexcept {
    needs_normalising_.store(true, std::memory_order_relaxed);
  }
  bool has_column(std::size_t column) const noexcept;
  /// Whether it has entries in runs: of the rows that these serve. Set at opening.
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
  /// Whether the hash index has an entry for such a row, or for rows with such values.
  bool is_hashed(std::uint32_t row) const noexcept;
  bool is_hashed(std::span<const Value> values) const noexcept;
  std::uint64_t hash_of(std::uint32_t row) const noexcept;
  std::uint64_t hash_of(std::span<const Value> values) const noexcept;
  /// Of all columns of the key.
  std::uint64_t record_hash(std::uint32_t row) const noexcept;

  /// Puts a new version into the index whose key no newer version of its record had. Fails with
  /// kAlreadyExists or kConflict when the key is unique and taken, or may turn out to be.
  /// `hash` is hash_of(row). `unflushed` takes what must be durable before the row commits. Fails
  /// with kOutOfSpace, too; so does `replace`.
  Status insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                columns::Unflushed& unflushed, pmem::Persister& persister);
  /// Whether `insert` of a row with these values of the key (normalised) would be refused now.
  Status check_free(std::span<const Value> values, const mvcc::Visibility& visibility,
                    columns::Candidates& scratch) const;
  /// A new version with an unchanged key takes the place of the one it was made from.
  /// kCorrupt when that one does not stand where its key says: the pool was damaged.
  /// `own_tag` is the tag of the transaction that calls. `is_first` becomes true when that
  /// transaction wrote `row` before the key was begun: the key then has no older version of the
  /// transaction's, and `erase` must undo the call instead of undo_replace.
  Status replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                 mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                 pmem::Persister& persister);
  void undo_replace(std::uint32_t row, std::uint32_t replacement);
  /// Takes `row` out if it stands in the index.
  void erase(std::uint32_t row);
  /// hash_of(row), where it is known: its key may be out of the caches by now.
  using KnownHash = std::optional<std::uint64_t>;
  /// The same for a row that `replace` has put another in the place of.
  void erase_superseded(std::uint32_t row, KnownHash hash);

  /// Replaces `out` by the rows to look at: first those that are not in runs. False: some may be
  /// missing, because of hint_damage().
  bool lookup(std::uint64_t hash, columns::Candidates& out) const;
  /// The same in two parts, as most look-ups need but one.
  bool lookup_outside_runs(std::uint64_t hash, columns::Candidates& out) const {
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

  /// Opening, when there are hints: claims them; then, after claims are finished, makes them whole.
  Status load() { return hints_ == nullptr ? Status() : hints_->load(); }
  void recover(pmem::Persister& persister) {
    if (hints_ != nullptr) hints_->recover(persister);
  }
  /// For rebuilding, when there are no hints.
  columns::HashIndex& hash() noexcept {
    FLUGS_CHECK(hash_);
    return *hash_;
  }

  // Of rows that were there at opening, made later: until `finish` the hash index may lack those
  // that are not entered and have not been replaced. See tables/keys/key_deferred_lookup.cc.
  void defer_rows(std::uint32_t end, std::uint64_t opened_at);
  /// Null: nothing was left, or it is finished.
  DeferredRows* deferred_rows() const noexcept {
    return __builtin_expect(is_finished_.load(std::memory_order_acquire), 1) ? nullptr
                                                                             : deferred_rows_.get();
  }
  /// `lookup`, and rows that the index may lack, each once: `values` are those of hash_of, and as
  /// many more as are known.
  bool lookup(std::span<const Value> values, columns::Candidates& out) const;

  /// While the key is made: enters a version that is there into the hash index, unless it is in
  /// already, or a newer one from which it is reached: `leads_to(newer)`. Calls `meet(row)` for
  /// each row of another record that has the key, if it must not repeat. `hash` is hash_of(row).
  void add_existing(std::uint32_t row, std::uint64_t hash,
                    FunctionRef<bool(std::uint32_t newer)> leads_to,
                    FunctionRef<void(std::uint32_t other)> meet);
  /// The same for the ordered index, in any order; takes the entries.
  void add_existing_ordered(std::vector<columns::OrderedEntry>& entries);
  /// All rows are in.
  void finish() noexcept { is_finished_.store(true, std::memory_order_release); }

  /// -1, 0, 1 as the row's key is before the range, inside, behind it.
  int place_of(std::uint32_t row, const KeyRange& range) const noexcept;
  /// Calls visit(row) with every entry whose key lies in the range, in order. `in_dram`, in any
  /// order, stands for what the index in DRAM has there when that is not whole; it is taken apart.
  void walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
            std::vector<columns::OrderedEntry>* in_dram = nullptr) const;

  /// Opening: an ordered key from all live rows at once.
  void build_ordered(std::span<const std::uint32_t> rows);
  columns::OrderedEntry ordered_entry(std::uint32_t row) const noexcept;
  Status check_ordered(std::size_t expected_entries) const;

  /// An audit goes on when they are not.
  bool has_loaded_hints() const noexcept { return hints_ != nullptr && hints_->is_loaded(); }
  Status hint_damage() const { return hints_ == nullptr ? Status() : hints_->damage(); }
  /// Checks what opening has not looked at of the hints. Fails with kCorrupt.
  Status check_hints() { return hints_ == nullptr ? Status() : hints_->check_directory(); }

  /// In DRAM, and in the pool.
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
  /// The table was dropped: no entry is left, and only prefetching goes on.
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
      deferred_rows_;  // null: the index was whole when it was opened, or made
  std::size_t hashed_columns_;
  std::optional<columns::HashIndex> hash_;  // none when there are hints
  std::unique_ptr<columns::HintIndex> hints_;
  std::unique_ptr<columns::OrderedIndex> ordered_;
};

}  // namespace flugs::engine
