#include "tables/keys/ordered_entries.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "tables/keys/key_prefix.h"
#include "tables/keys/run_walk.h"

namespace flugs::engine {

OrderedEntries::OrderedEntries(const EntriesOrigin& origin)
    : key_(origin.key), rows_(origin.parts.rows), runs_(origin.runs), index_(&origin.key) {}

void OrderedEntries::sort(std::vector<columns::OrderedEntry>& entries) const {
  std::sort(entries.begin(), entries.end(),
            [&](const auto& a, const auto& b) { return columns::precedes(&key_, a, b); });
}

// A heap, so that a caller that wants the first few does not wait until all are sorted.
void OrderedEntries::visit_in_order(std::vector<columns::OrderedEntry>& entries,
                                    columns::OrderedIndex::Visit visit) const {
  const auto is_later = [&](const auto& a, const auto& b) {
    return columns::precedes(&key_, b, a);
  };
  std::make_heap(entries.begin(), entries.end(), is_later);
  while (!entries.empty() && visit(entries.front())) {
    std::pop_heap(entries.begin(), entries.end(), is_later);
    entries.pop_back();
  }
}

void OrderedEntries::walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
                          std::vector<columns::OrderedEntry>* in_dram) const {
  FLUGS_DCHECK(std::max(range.lower.size(), range.upper.size()) <= key_.columns().size());
  const KeyPrefix lower = key_.prefix_of(range.lower);
  const KeyPrefix upper = key_.prefix_of(range.upper);
  const auto scan = [&](columns::OrderedIndex::Visit visit_entry) {
    if (in_dram != nullptr) return visit_in_order(*in_dram, visit_entry);
    const auto probe = [&](const columns::OrderedEntry& entry) {
      return key_.place_of(entry, range, lower, upper);
    };
    index_.scan(lower.bits(), probe, visit_entry);
  };
  const auto visit_entry = [&](const columns::OrderedEntry& entry) { return visit(entry.row); };
  if (!runs_.serves_any()) return scan(visit_entry);
  // The probe compares rows, not prefixes: those come from the pool and may be damaged.
  const auto probe = [&](const columns::OrderedEntry& entry) {
    return key_.place_of(entry.row, range);
  };
  RunWalk runs(runs_.all(), runs_.key(), key_, lower.bits(), probe);
  bool goes_on = true;
  scan([&](const columns::OrderedEntry& entry) {
    goes_on = runs.visit_before(&entry, visit_entry) && visit(entry.row);
    return goes_on;
  });
  if (goes_on) runs.visit_before(nullptr, visit_entry);
}

// In sorted order, most entries go into a leaf that is in the caches.
void OrderedEntries::add_existing(std::vector<columns::OrderedEntry>& entries) {
  sort(entries);
  for (const columns::OrderedEntry& entry : entries) index_.insert_unless_there(entry);
  entries.clear();
}

void OrderedEntries::rebuild() {
  std::vector<columns::OrderedEntry> entries;
  entries.reserve(runs_.unserved_rows());
  runs_.for_each_unserved(0, rows_.rows_end(),
                          [&](std::uint32_t row) { entries.push_back(key_.ordered_entry(row)); });
  sort(entries);
  index_.build_sorted(entries);
}

Status OrderedEntries::check(const std::string& key, std::size_t expected_entries) const {
  if (Status s = index_.check(); !s.ok()) return s;
  if (index_.size() < expected_entries)
    return Status(StatusCode::kCorrupt,
                  fmt::format("key {}: {} entries in the {} index, but {} live rows", key,
                              index_.size(), facts_of(kKind).name, expected_entries));
  return {};
}

}  // namespace flugs::engine
