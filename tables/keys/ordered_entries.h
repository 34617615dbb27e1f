#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "columns/index/ordered_index.h"
#include "flugs/function_ref.h"
#include "tables/catalog/key_kinds.h"
#include "tables/keys/entry_defaults.h"
#include "tables/keys/key_columns.h"
#include "tables/keys/key_runs.h"

namespace flugs::engine {

/// The entries of an ordered key in a B+-tree in DRAM (KeyKind::kOrdered), one per version. Rows
/// that index runs serve have theirs there.
///
/// Its functions are those of KeyEntries.
/// Thread-safety: any thread, except `rebuild`.
class OrderedEntries final {
 public:
  static constexpr KeyKind kKind = KeyKind::kOrdered;

  explicit OrderedEntries(const EntriesOrigin& origin);

  void insert(std::uint32_t row) {
    bool is_whole = false;
    const columns::OrderedEntry entry = key_.ordered_entry(row, is_whole);
    index_.insert(entry, is_whole);
  }
  void erase(std::uint32_t row) {
    bool is_whole = false;
    const columns::OrderedEntry entry = key_.ordered_entry(row, is_whole);
    index_.erase(entry, is_whole);
  }
  void walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
            std::vector<columns::OrderedEntry>* in_dram) const;

  void rebuild();
  void add_existing(std::vector<columns::OrderedEntry>& entries);
  Status check(const std::string& key, std::size_t expected_entries) const;
  std::size_t memory_bytes() const noexcept { return index_.memory_bytes(); }
  void release_memory() { index_.clear(); }

 private:
  void sort(std::vector<columns::OrderedEntry>& entries) const;
  struct Rest;
  void visit_in_order(std::vector<columns::OrderedEntry>& entries, bool descending,
                      columns::OrderedIndex::Visit visit) const;

  const KeyColumns& key_;
  const RowStore& rows_;
  const KeyRuns& runs_;
  columns::OrderedIndex index_;
};

}  // namespace flugs::engine
