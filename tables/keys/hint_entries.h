#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "columns/cells/unflushed.h"
#include "columns/index/hint_index.h"
#include "tables/catalog/key_kinds.h"
#include "tables/keys/entry_defaults.h"
#include "tables/keys/key_columns.h"

namespace flugs::engine {

/// The entries of a unique key in a hint index in the pool (KeyKind::kHint): one for each version
/// that is not dead, but at most two per record that is updated, because a version that a crash
/// makes the newest again must be found. An entry may name a row that has been reused since. Index
/// runs have no entries under a hash of the key.
///
/// Its functions are those of KeyEntries.
/// Thread-safety: any thread, except `load` and `recover`.
class HintEntries final : public EntriesInPool {
 public:
  static constexpr KeyKind kKind = KeyKind::kHint;

  explicit HintEntries(const EntriesOrigin& origin);

  Status insert(std::uint32_t row, std::uint64_t hash, const mvcc::Visibility& visibility,
                columns::Unflushed& unflushed, pmem::Persister& persister);
  Status replace(std::uint32_t row, std::uint32_t replacement, std::uint64_t hash,
                 mvcc::Stamp own_tag, bool& is_first, columns::Unflushed& unflushed,
                 pmem::Persister& persister);
  void undo_replace(std::uint32_t row, std::uint32_t replacement);
  void erase(std::uint32_t row) { erase_superseded(row, {}); }
  void erase_superseded(std::uint32_t row, KnownHash hash);

  bool lookup(std::uint64_t hash, columns::Candidates& out) const {
    return lookup_outside_runs(hash, out);
  }
  bool lookup(std::span<const Value> values, columns::Candidates& out) const {
    return lookup_outside_runs(key_.hash_of(values), out);
  }
  bool lookup_outside_runs(std::uint64_t hash, columns::Candidates& out) const {
    const bool is_whole = index_.lookup(hash, out);
    out.keep_if([this](std::uint32_t row) { return rows_.exists(row); });
    return is_whole;
  }
  template <typename F>
  static bool any_in_runs(std::uint64_t, F&&) noexcept {
    return false;
  }
  void prefetch(std::uint64_t hash) const noexcept { index_.prefetch(hash); }
  void prefetch_for_edit(std::uint64_t hash) noexcept { index_.prefetch_for_edit(hash); }
  void prefetch_for_erase(std::uint64_t hash) noexcept { index_.prefetch_for_erase(hash); }

  Status load() { return index_.load(); }
  void recover(pmem::Persister& persister) { index_.recover(persister); }
  bool is_loaded() const noexcept { return index_.is_loaded(); }
  Status damage() const { return index_.damage(); }
  Status check_unread() { return index_.check_directory(); }
  bool has_much_to_check() const noexcept { return index_.has_much_to_check(); }
  void add_pages(pmem::WarmList& pages) const { index_.add_pages(pages); }
  std::uint64_t bytes_in_pool() const noexcept { return index_.bytes_in_pool(); }
  void release_memory() { index_.release_all(); }

 private:
  const KeyColumns& key_;
  const RowStore& rows_;
  columns::HintIndex index_;
};

}  // namespace flugs::engine
