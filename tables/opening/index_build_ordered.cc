// Ordered keys of rows in the delta after opening: searched before they are made, and made while
// transactions run (decision 0020).

#include <algorithm>
#include <functional>
#include <vector>

#include "mvcc/transaction_slots.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"

namespace flugs::engine {

namespace {

// Row positions that a thread enters, sorted, under one snapshot: 4 MB of entries. Rows that die
// meanwhile become free only after that.
constexpr std::uint32_t kRowsEntered = 1u << 18;

}  // namespace

// Visits the rows in the range for which `is_wanted` holds, in order, until `visit` returns false.
// `is_wanted` may hold only for rows that some snapshot from `oldest_snapshot` on sees. While the
// key is being made, or was when that snapshot was taken, the rows that it may lack are checked one
// by one. Which rows these are was settled at opening.
void IndexBuild::walk(const KeyIndex& key, const KeyRange& range, std::uint64_t oldest_snapshot,
                      FunctionRef<bool(std::uint32_t row)> is_wanted,
                      FunctionRef<bool(std::uint32_t row)> visit) const {
  const auto visit_wanted = [&](std::uint32_t row) { return !is_wanted(row) || visit(row); };
  if (!is_deferred(DeferredIndexes::kOrderedIndexes) &&
      oldest_snapshot >= ordered_since_.load(std::memory_order_relaxed))
    return key.entries().walk(range, visit_wanted);
  std::vector<columns::OrderedEntry> entries;
  key.entries().runs().for_each_unserved(0, data_.rows.rows_end(), [&](std::uint32_t row) {
    if (is_wanted(row) && key.place_of(row, range) == 0) entries.push_back(key.ordered_entry(row));
  });
  key.entries().walk(range, visit_wanted, &entries);
}

// Writers have entered the rows that they wrote since opening, and take out rows that become free.
// Older rows are entered here, if a present snapshot sees them: while that snapshot is held none of
// them becomes free, so no entry names a row that was reused. A transaction that began before the
// last of these snapshots may see rows without an entry.
Status IndexBuild::enter_ordered(KeyIndex& key, recovery::Phases& phases) {
  const std::uint32_t end = data_.rows.rows_end();
  for (std::uint32_t first = 0; first < end;) {
    if (data_.is_dropped()) return no_table();
    const mvcc::SnapshotHold hold(*slots_);
    const mvcc::Visibility visibility = hold.visibility();
    std::vector<std::function<Status()>> tasks;
    for (std::size_t i = 0; i < phases.threads() && first < end; ++i) {
      const std::uint32_t batch_end = first + std::min(kRowsEntered, end - first);
      tasks.emplace_back([this, &key, &visibility, first, batch_end] {
        std::vector<columns::OrderedEntry> entries;
        key.entries().runs().for_each_unserved(first, batch_end, [&](std::uint32_t row) {
          if (visibility.sees(data_.rows.version(row))) entries.push_back(key.ordered_entry(row));
        });
        key.entries().add_existing_ordered(entries);
        return Status();
      });
      first = batch_end;
    }
    if (Status s = phases.run_parallel(kIndexesPhase, tasks); !s.ok()) return s;
  }
  return {};
}

Status IndexBuild::build_ordered(recovery::Phases& phases) {
  if (Status s = sweep_for_build(phases); !s.ok()) return s;
  for (const std::size_t key : KeySet(data_.keys.kept()))
    if ((data_.keys[key]->entries().made_at_opening() & DeferredIndexes::kOrderedIndexes) != 0)
      if (Status s = enter_ordered(*data_.keys[key], phases); !s.ok()) return s;
  // If no thread makes indexes unasked, no transaction has written yet.
  if (builds_later_) ordered_since_.store(slots_->advance(), std::memory_order_relaxed);
  return {};
}

}  // namespace flugs::engine
