// Unique keys of rows in the delta after opening: made while transactions go on, the one that was
// asked for first before all others (decision 0020).

#include <algorithm>
#include <functional>
#include <limits>
#include <mutex>
#include <vector>

#include "engine/table.h"
#include "mvcc/transaction_slots.h"

namespace flugs::engine {

namespace {

// Positions of rows that are entered under one snapshot, an eighth of the table, so that look-ups
// soon have less to look through: at most 32 MB of entries, 50 to 100 ms. What dies meanwhile waits
// for so long until it is given free.
constexpr std::uint32_t kRowsEnteredMax = 1u << 22;
constexpr std::uint32_t kRowsEnteredMin = 1u << 12;
constexpr std::uint32_t kPartsWished = 8;
constexpr std::uint32_t kRowsPerTask = 1u << 16;

}  // namespace

// From a version to an older one with the same key that the snapshot sees: what lies between them
// is newer than the snapshot, so that no row of it has been used again.
bool Table::leads_to(const KeyIndex& key, std::uint32_t newer, std::uint32_t row,
                     const mvcc::Visibility& snapshot) const {
  for (std::uint32_t at = newer; at != kNoRow; at = rows_.previous(at)) {
    if (at == row) return true;
    if (!key.same_key(at, row) || snapshot.happened(rows_.version(at).created)) return false;
  }
  return false;
}

// Of the rows from `first` to `end` - 1 those that were there at opening and that a snapshot of now
// sees: while that is held none of them leaves the indexes. Writers enter what they write; what
// they have replaced since, and entered the replacement of, is reached from that.
Status Table::enter_hashed(KeyIndex& key, std::uint32_t first, std::uint32_t end,
                           recovery::Phases& phases) {
  LateRows& late = *key.late();
  const mvcc::SnapshotHold hold(*slots_);
  const mvcc::Visibility visibility = hold.visibility();
  const std::uint64_t rows = end - first;
  const std::uint64_t sources =
      std::min<std::uint64_t>(std::uint64_t{phases.threads()} * 4, rows / kRowsPerTask + 1);
  columns::HashIndexBuilder builder(columns::HashIndexBuilder::InUse(), key.hash(), rows, sources);
  std::vector<std::function<Status()>> tasks;
  for (std::uint64_t i = 0; i < sources; ++i)
    tasks.emplace_back([&, i] {
      columns::HashIndexBuilder::Source& source = builder.source(i);
      for_each_unserved(key, first + static_cast<std::uint32_t>(rows * i / sources),
                        first + static_cast<std::uint32_t>(rows * (i + 1) / sources),
                        [&](std::uint32_t row) {
                          const mvcc::VersionLayout& version = rows_.version(row);
                          if (late.has(version) && visibility.sees(version) && key.is_hashed(row))
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
            row, hash, [&](std::uint32_t newer) { return leads_to(key, newer, row, visibility); },
            [](std::uint32_t) {});
      });
      return Status();
    });
  if (Status s = phases.run_parallel(kIndexesPhase, tasks); !s.ok()) return s;
  late.note_entered(end, visibility.snapshot());
  return {};
}

// Of keys that lack rows the one that was asked for first; else any.
KeyIndex* Table::next_to_enter() const noexcept {
  KeyIndex* next = nullptr;
  std::int64_t asked_at = std::numeric_limits<std::int64_t>::max();
  for (KeyIndex* key : keys_) {
    const LateRows* late = key->late();
    if (late == nullptr || late->entered() == late->end()) continue;
    const std::int64_t at = late->asked_at();
    if (next != nullptr && (at == 0 || at >= asked_at)) continue;
    next = key;
    asked_at = at == 0 ? asked_at : at;
  }
  return next;
}

Status Table::build_hash(recovery::Phases& phases) {
  if (Status s = sweep_for_build(phases); !s.ok()) return s;
  while (KeyIndex* const key = next_to_enter()) {
    const std::uint32_t first = key->late()->entered();
    const std::uint32_t end = key->late()->end();
    if (is_dropped()) return no_table();
    if (first == 0) key->hash().make_room(unserved_rows(*key));
    const std::uint32_t rows = std::clamp(end / kPartsWished, kRowsEnteredMin, kRowsEnteredMax);
    if (Status s = enter_hashed(*key, first, first + std::min(rows, end - first), phases); !s.ok())
      return s;
  }
  // Those that lack nothing are in use as any other when settle_keys says so.
  unbuilt_.fetch_or(kUnsettledKeys, std::memory_order_relaxed);
  return {};
}

// Whether look-ups and writers have nothing to do any more for keys that were made: nobody is left
// who may see rows that had been deleted before they were entered. If nobody makes indexes without
// being asked, nobody had written yet.
bool Table::settle_keys() noexcept {
  if (!is_unbuilt(kUnsettledKeys)) return true;
  const std::lock_guard guard(build_mutex_);
  return settle_keys_locked();
}

bool Table::settle_keys_locked() noexcept {
  if (!is_unbuilt(kUnsettledKeys) || is_dropped()) return true;
  std::uint64_t since = 0;
  for (const KeyIndex* key : keys_)
    if (const LateRows* late = key->late()) since = std::max(since, late->since());
  if (builds_later_ && slots_->oldest_snapshot() < since) return false;
  for (KeyIndex* key : keys_)
    if (key->late() != nullptr) key->finish();
  unbuilt_.fetch_and(static_cast<std::uint8_t>(~kUnsettledKeys), std::memory_order_release);
  return true;
}

// When somebody first wanted indexes that are to be made; 0: nobody has, or there are none.
std::int64_t Table::asked_at() const noexcept {
  return (unbuilt_.load(std::memory_order_relaxed) & kAllIndexes) == 0
             ? 0
             : asked_at_.load(std::memory_order_relaxed);
}

void Table::ask_for(KeyMask keys) noexcept {
  for (const std::size_t place : KeyPlaces(static_cast<KeyMask>(keys & keys_.kept())))
    if (LateRows* late = keys_[place]->late()) late->ask();
  if (asked_at_.load(std::memory_order_relaxed) != 0) return;
  std::int64_t nobody = 0;
  asked_at_.compare_exchange_strong(nobody,
                                    std::chrono::steady_clock::now().time_since_epoch().count(),
                                    std::memory_order_relaxed);
}

}  // namespace flugs::engine
