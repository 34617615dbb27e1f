#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/check.h"
#include "tables/catalog/key_kinds.h"
#include "tables/keys/deferred_indexes.h"
#include "tables/keys/hash_entries.h"
#include "tables/keys/hint_entries.h"
#include "tables/keys/key_runs.h"
#include "tables/keys/ordered_entries.h"

namespace flugs::engine {

/// Calls act(entries) with what `kinds`, a variant that may hold nothing, holds; if that is
/// nothing, returns the empty answer. An `if` per kind instead of std::visit, so that the compiler
/// puts the calls in line.
template <std::size_t kAt = 0, typename Kinds, typename F>
[[gnu::always_inline]] inline auto on_kind(Kinds& kinds, F&& act) {
  using Result = decltype(act(*std::get_if<0>(&kinds)));
  if constexpr (kAt + 1 == std::variant_size_v<std::remove_const_t<Kinds>>) {
    static_assert(
        std::is_same_v<std::remove_cvref_t<decltype(*std::get_if<kAt>(&kinds))>, std::monostate>);
    return Result();
  } else {
    if (auto* const entries = std::get_if<kAt>(&kinds)) return act(*entries);
    return on_kind<kAt + 1>(kinds, act);
  }
}
template <typename Entries>
constexpr const KeyKindFacts& kind_facts(const Entries&) noexcept {
  return facts_of(Entries::kKind);
}

/// The entries of a key: an index for look-ups by hash, if the key is unique, and one for ranges,
/// if it is ordered. All that depends on the kinds of these indexes is decided here. Others ask for
/// what they want, and for properties, never for a kind.
///
/// A new kind of index is a row of kKeyKindFacts, a class with the functions of HashEntries or
/// OrderedEntries, and an alternative of HashedKinds or OrderedKinds.
///
/// An index never decides what is visible: it gives rows to check.
/// Thread-safety: any thread, except rebuilding.
class KeyEntries final {
 public:
  /// kOpening: made when the table is opened. kAdded: made of the existing rows while transactions
  /// run (KeyBuild). No run has entries of an added key before the table is opened again, and until
  /// it is finished it may lack rows that are replaced.
  enum class Origin : std::uint8_t { kOpening, kAdded };

  /// `owner` is for messages.
  KeyEntries(const KeyColumns& key, KeyKinds kinds, const KeyParts& parts, const std::string& owner,
             Origin origin);
  KeyEntries(const KeyEntries&) = delete;
  KeyEntries& operator=(const KeyEntries&) = delete;

  /// Puts a new version into the index; no newer version of its record may have had the key. Fails
  /// with kAlreadyExists or kConflict when the key is unique and taken, or may turn out to be
  /// taken. `hash` is that of the row. `unflushed` takes what must be durable before the row
  /// commits. Also fails with kOutOfSpace, and so does `replace`.
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
  /// The same for a row that `replace` has replaced.
  void erase_superseded(std::uint32_t row, KnownHash hash);
  /// Whether erase_superseded is quicker with the hash.
  bool erases_by_hash() const noexcept {
    return on_kind(hashed_, [](const auto& entries) { return kind_facts(entries).is_in_pool; });
  }

  /// Sets `out` to the rows to check, those that are not in runs first. False: some may be missing,
  /// because of damage().
  bool lookup(std::uint64_t hash, columns::Candidates& out) const;
  /// The same in two parts, as most look-ups need only the first.
  bool lookup_outside_runs(std::uint64_t hash, columns::Candidates& out) const {
    return on_kind(hashed_,
                   [&](const auto& entries) { return entries.lookup_outside_runs(hash, out); });
  }
  template <typename F>
  bool any_in_runs(std::uint64_t hash, F&& visit) const {
    return on_kind(hashed_, [&](const auto& entries) { return entries.any_in_runs(hash, visit); });
  }
  /// `lookup`, and also the rows that the index may lack (deferred_rows), each once. `values` are
  /// those that the hash covers, and as many more as are known.
  bool lookup(std::span<const Value> values, columns::Candidates& out) const;
  /// Whether a look-up may give a version after a newer one that leads to it.
  bool finds_in_any_order() const noexcept {
    return on_kind(hashed_, [](const auto& entries) { return kind_facts(entries).may_come_back; });
  }
  /// Whether the index may have `found` entries of one visible row.
  bool may_have(std::size_t found) const noexcept {
    return finds_in_any_order() ? found != 0 : found == 1;
  }
  void prefetch(std::uint64_t hash) const noexcept {
    on_kind(hashed_, [&](const auto& entries) { entries.prefetch(hash); });
  }
  void prefetch_for_edit(std::uint64_t hash) noexcept {
    on_kind(hashed_, [&](auto& entries) { entries.prefetch_for_edit(hash); });
  }
  void prefetch_for_erase(std::uint64_t hash) noexcept {
    on_kind(hashed_, [&](auto& entries) { entries.prefetch_for_erase(hash); });
  }
  /// Calls visit(row) with every entry whose key is in the range, in order. When the index in DRAM
  /// is not complete, `in_dram` has its entries of the range, in any order; they are consumed.
  void walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
            std::vector<columns::OrderedEntry>* in_dram = nullptr) const;

  KeyRuns& runs() noexcept { return runs_; }
  const KeyRuns& runs() const noexcept { return runs_; }
  /// Whether index runs have hash tables for the key, and its rows in order.
  bool is_hashed_in_runs() const noexcept {
    return on_kind(hashed_, [](const auto& entries) { return kind_facts(entries).is_in_runs; });
  }
  bool is_ordered_in_runs() const noexcept {
    return on_kind(ordered_, [](const auto& entries) { return kind_facts(entries).is_in_runs; });
  }

  /// Opening, of entries in the pool: load claims them; recover, after claims are finished,
  /// completes them.
  bool is_in_pool() const noexcept {
    return on_kind(hashed_, [](const auto& entries) { return kind_facts(entries).is_in_pool; });
  }
  Status load();
  void recover(pmem::Persister& persister);
  /// Whether there are entries in the pool, and load has succeeded; an audit goes on without them.
  bool is_loaded() const noexcept;
  /// kCorrupt after damage to entries in the pool was met.
  Status damage() const;
  /// Checks what load has not read. Fails as damage().
  Status check_unread();
  /// Whether check_unread takes more than a moment.
  bool has_much_to_check() const noexcept;
  void add_pages(pmem::WarmList& pages) const;

  /// Which indexes have to be made of the rows at each opening.
  std::uint8_t made_at_opening() const noexcept;
  /// Opening: makes the index for look-ups by all threads, as a part of the phase; the index for
  /// ranges, by one.
  Status rebuild_hashed(recovery::Phases& phases, const char* phase);
  void rebuild_ordered();
  /// Opening: leaves the index for look-ups to enter_deferred.
  void defer_rows(std::uint32_t end, std::uint64_t opened_at);
  /// Null: no rows were left for later, or the index is finished.
  DeferredRows* deferred_rows() const noexcept {
    return on_kind(hashed_, [](const auto& entries) { return entries.deferred_rows(); });
  }
  /// Enters some of deferred_rows while transactions run.
  Status enter_deferred(recovery::Phases& phases, const char* phase, LeadsTo leads_to);
  /// While the key is made: enters an existing version into the index for look-ups, unless the
  /// index has it already, or a newer version that leads to it. Calls `meet(row)` for each row of
  /// another record with the same key, if the key must not repeat. `hash` is that of the row.
  void add_existing(std::uint32_t row, std::uint64_t hash, LeadsTo leads_to,
                    FunctionRef<void(std::uint32_t other)> meet);
  /// The same for the index for ranges; entries may be in any order, and are consumed.
  void add_existing_ordered(std::vector<columns::OrderedEntry>& entries);
  /// Called when all rows are in.
  void finish() noexcept;

  /// Audits the index for ranges. Fails with kCorrupt; the message begins with the key's name.
  Status check_ordered(const std::string& name, std::size_t expected_entries) const;
  /// In DRAM.
  std::size_t memory_bytes() const noexcept;
  std::uint64_t bytes_in_pool() const noexcept;
  /// Called when the key was dropped: no entry is left, and only prefetching remains possible.
  void release_memory();

 private:
  using HashedKinds = std::variant<HintEntries, HashEntries, std::monostate>;
  using OrderedKinds = std::variant<OrderedEntries, std::monostate>;

  KeyEntries(KeyKinds kinds, const EntriesOrigin& origin);

  const KeyColumns& key_;
  KeyRuns runs_;
  HashedKinds hashed_;
  OrderedKinds ordered_;
};

}  // namespace flugs::engine
