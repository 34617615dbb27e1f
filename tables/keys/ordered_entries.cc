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
void OrderedEntries::visit_in_order(std::vector<columns::OrderedEntry>& entries, bool descending,
                                    columns::OrderedIndex::Visit visit) const {
  const auto is_later = [&](const auto& a, const auto& b) {
    return descending ? columns::precedes(&key_, a, b) : columns::precedes(&key_, b, a);
  };
  std::make_heap(entries.begin(), entries.end(), is_later);
  while (!entries.empty() && visit(entries.front())) {
    std::pop_heap(entries.begin(), entries.end(), is_later);
    entries.pop_back();
  }
}

// Places entries for a walk that goes on behind a row: -1, 0, 1 as the entry is before, inside or
// behind what is left of the range, in the order of the key.
struct OrderedEntries::Rest {
  const KeyColumns& key;
  const KeyRange& range;
  columns::OrderedEntry behind;

  Rest(const KeyColumns& of, const KeyRange& in)
      : key(of),
        range(in),
        behind(in.behind == kNoRow ? columns::OrderedEntry{} : of.ordered_entry(in.behind)) {}
  bool is_all() const noexcept { return range.behind == kNoRow; }
  int place(const columns::OrderedEntry& entry, int in_range) const {
    if (in_range != 0 || is_all()) return in_range;
    if (range.descending) return columns::precedes(&key, entry, behind) ? 0 : 1;
    return columns::precedes(&key, behind, entry) ? 0 : -1;
  }
};

void OrderedEntries::walk(const KeyRange& range, FunctionRef<bool(std::uint32_t row)> visit,
                          std::vector<columns::OrderedEntry>* in_dram) const {
  FLUGS_DCHECK(std::max(range.lower.size(), range.upper.size()) <= key_.columns().size());
  const KeyPrefix lower = key_.prefix_of(range.lower);
  const KeyPrefix upper = key_.prefix_of(range.upper);
  const Rest rest(key_, range);
  const bool down = range.descending;
  std::uint64_t first_prefix = lower.bits();
  if (down) first_prefix = range.upper.empty() ? ~std::uint64_t{0} : upper.bits();
  if (!rest.is_all()) first_prefix = rest.behind.prefix;
  const auto scan = [&](columns::OrderedIndex::Visit visit_entry) {
    if (in_dram != nullptr) {
      std::erase_if(*in_dram, [&](const auto& entry) { return rest.place(entry, 0) != 0; });
      return visit_in_order(*in_dram, down, visit_entry);
    }
    const auto probe = [&](const columns::OrderedEntry& entry) {
      return rest.place(entry, key_.place_of(entry, range, lower, upper));
    };
    if (down) return index_.scan_down(first_prefix, probe, visit_entry);
    index_.scan(first_prefix, probe, visit_entry);
  };
  const auto visit_entry = [&](const columns::OrderedEntry& entry) { return visit(entry.row); };
  if (!runs_.serves_any()) return scan(visit_entry);
  // The probe compares rows, not prefixes: those come from the pool and may be damaged.
  const auto probe = [&](const columns::OrderedEntry& entry) {
    int place = key_.place_of(entry.row, range);
    if (!rest.is_all()) place = rest.place(key_.ordered_entry(entry.row), place);
    return down ? -place : place;
  };
  // Downwards, entries with greater prefixes than the upper bound's least may still be inside.
  const std::uint64_t first_in_runs =
      down && rest.is_all() && !range.upper.empty() ? upper.greatest() : first_prefix;
  RunWalk runs(runs_.all(), runs_.key(), key_, down, first_in_runs, probe);
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
