// Unique keys of rows in the delta after opening: made while transactions run, the first that was
// asked for before all others (decision 0020).

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "mvcc/transaction_slots.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/opening/row_sweep.h"

namespace flugs::engine {

namespace {

// Row positions that are entered at a time: an eighth of the table, so that look-ups soon have
// fewer rows to search; at most 32 MB of entries.
constexpr std::uint32_t kRowsEnteredMax = 1u << 22;
constexpr std::uint32_t kRowsEnteredMin = 1u << 12;
constexpr std::uint32_t kPartsWished = 8;
constexpr std::uint32_t kRowsPerSource = 1u << 16;

}  // namespace

// Goes from a version to an older one with the same key that the snapshot sees. The versions
// between them are newer than the snapshot, so no row of them has been reused.
bool IndexBuild::leads_to(const KeyIndex& key, std::uint32_t newer, std::uint32_t row,
                          const mvcc::Visibility& snapshot) const {
  for (std::uint32_t at = newer; at != kNoRow; at = data_.rows.previous(at)) {
    if (at == row) return true;
    if (!key.same_key(at, row) || snapshot.happened(data_.rows.version(at).created)) return false;
  }
  return false;
}

// Enters those rows from `first` to `end` - 1 that were there at opening, even if they were deleted
// or replaced since: none leaves the indexes before all are in (keep_opening), so that every
// snapshot finds them. Writers enter the rows that they write. If a writer replaced a row and
// entered the replacement, the replacement leads to it.
Status IndexBuild::enter_hashed(KeyIndex& key, std::uint32_t first, std::uint32_t end,
                                recovery::Phases& phases) {
  DeferredRows& deferred = *key.deferred_rows();
  const mvcc::Visibility opening(slots_->mirrors(), slots_->opened_at(), mvcc::kNoStamp);
  const std::uint64_t rows = end - first;
  const std::uint64_t sources =
      std::min<std::uint64_t>(std::uint64_t{phases.threads()} * 4, rows / kRowsPerSource + 1);
  columns::HashIndexBuilder builder(columns::HashIndexBuilder::InUse(), key.hash(), rows, sources);
  std::vector<std::function<Status()>> tasks;
  tasks.reserve(std::max<std::size_t>(sources, builder.groups()));
  for (std::uint64_t i = 0; i < sources; ++i)
    tasks.emplace_back([&, i] {
      columns::HashIndexBuilder::Source& source = builder.source(i);
      for_each_unserved(key, first + static_cast<std::uint32_t>(rows * i / sources),
                        first + static_cast<std::uint32_t>(rows * (i + 1) / sources),
                        [&](std::uint32_t row) {
                          if (deferred.has(data_.rows.version(row)) && key.is_hashed(row))
                            source.add(key.hash_of(row), row);
                        });
      return Status();
    });
  if (Status s = phases.run_parallel(kIndexesPhase, tasks); !s.ok()) return s;
  tasks.clear();
  for (std::size_t group = 0; group < builder.groups(); ++group)
    tasks.emplace_back([&, group] {
      builder.for_each_in_group(group, [&](std::uint64_t hash, std::uint32_t row) {
        key.add_existing(
            row, hash, [&](std::uint32_t newer) { return leads_to(key, newer, row, opening); },
            [](std::uint32_t) {});
      });
      return Status();
    });
  if (Status s = phases.run_parallel(kIndexesPhase, tasks); !s.ok()) return s;
  deferred.note_entered(end);
  return {};
}

// The key that was asked for first, of those that lack rows; any of them if none was asked for.
KeyIndex* IndexBuild::next_to_enter() const noexcept {
  KeyIndex* next = nullptr;
  std::int64_t asked_at = std::numeric_limits<std::int64_t>::max();
  for (KeyIndex* key : data_.keys) {
    const DeferredRows* deferred = key->deferred_rows();
    if (deferred == nullptr || deferred->entered() == deferred->end()) continue;
    const std::int64_t at = deferred->asked_at();
    if (next != nullptr && (at == 0 || at >= asked_at)) continue;
    next = key;
    asked_at = at == 0 ? asked_at : at;
  }
  return next;
}

Status IndexBuild::build_hash(recovery::Phases& phases) {
  if (Status s = sweep_for_build(phases); !s.ok()) return s;
  while (KeyIndex* const key = next_to_enter()) {
    const std::uint32_t first = key->deferred_rows()->entered();
    const std::uint32_t end = key->deferred_rows()->end();
    if (data_.is_dropped()) return no_table();
    if (first == 0) key->hash().make_room(unserved_rows(*key));
    const std::uint32_t rows = std::clamp(end / kPartsWished, kRowsEnteredMin, kRowsEnteredMax);
    if (Status s = enter_hashed(*key, first, first + std::min(rows, end - first), phases); !s.ok())
      return s;
  }
  for (KeyIndex* key : data_.keys)
    if (key->deferred_rows() != nullptr) key->finish();
  return {};
}

// Called before the table is used.
void IndexBuild::set_builds_later(bool builds_later) noexcept {
  builds_later_ = builds_later;
  const bool is_left = builds_later && is_deferred(DeferredIndexes::kHashIndexes);
  if (is_left && !keeps_opening_.exchange(true)) slots_->keep_opening();
  if (!is_left) release_opening();
}

void IndexBuild::release_opening() noexcept {
  if (keeps_opening_.exchange(false)) slots_->release_opening();
}

// When missing indexes were first wanted; 0: not yet, or none are missing.
std::int64_t IndexBuild::asked_at() const noexcept {
  return (deferred_.load(std::memory_order_relaxed) & DeferredIndexes::kAllIndexes) == 0
             ? 0
             : asked_at_.load(std::memory_order_relaxed);
}

void IndexBuild::ask_for(KeyMask keys) noexcept {
  for (const std::size_t place : KeyPlaces(static_cast<KeyMask>(keys & data_.keys.kept())))
    if (DeferredRows* deferred = data_.keys[place]->deferred_rows()) deferred->ask();
  if (asked_at_.load(std::memory_order_relaxed) != 0) return;
  std::int64_t nobody = 0;
  asked_at_.compare_exchange_strong(nobody,
                                    std::chrono::steady_clock::now().time_since_epoch().count(),
                                    std::memory_order_relaxed);
}

}  // namespace flugs::engine
