#include "tables/opening/index_build.h"

#include <algorithm>
#include <mutex>

#include "base/elapsed.h"
#include "recovery/rebuild_dictionaries.h"
#include "tables/data/table_data.h"
#include "tables/opening/row_sweep.h"

namespace flugs::engine {

bool IndexBuild::has_keys_in_dram() const noexcept {
  return std::any_of(data_.keys.begin(), data_.keys.end(),
                     [](const KeyIndex* key) { return key->entries().made_at_opening() != 0; });
}

Status IndexBuild::begin_dictionaries() {
  Status begun;
  data_.columns.for_each_used([&](columns::Column& column) {
    if (begun.ok() && column.is_dictionary()) begun = column.dictionary().begin_rebuild();
  });
  return begun;
}

std::uint64_t IndexBuild::unindexed_entries() const noexcept {
  std::uint64_t entries = 0;
  data_.columns.for_each_used([&](columns::Column& column) {
    if (column.is_dictionary() && !column.dictionary().is_indexed())
      entries += column.dictionary().rebuild_end();
  });
  return entries;
}

DeferredIndexes IndexBuild::find_indexes() const noexcept {
  DeferredIndexes found;
  found.entries = unindexed_entries();
  if (found.entries != 0) found.indexes |= DeferredIndexes::kDictionaryIndexes;
  found.rows = has_keys_in_dram() ? data_.rows.rows_end() : 0;
  if (found.rows == 0) return found;
  for (const KeyIndex* key : data_.keys) found.indexes |= key->entries().made_at_opening();
  return found;
}

void IndexBuild::defer(const DeferredIndexes& found, std::uint32_t threads,
                       mvcc::TransactionSlots& slots, const std::atomic<bool>& stops) noexcept {
  slots_ = &slots;
  at_opening_ = found;
  for (KeyIndex* key : data_.keys)
    if (found.rows != 0)
      key->entries().defer_rows(static_cast<std::uint32_t>(found.rows), slots.opened_at());
  threads_ = threads;
  stops_ = &stops;
  deferred_.store(found.indexes, std::memory_order_release);
}

DeferredIndexes IndexBuild::still_deferred() const noexcept {
  DeferredIndexes found;
  found.indexes = deferred_.load(std::memory_order_acquire);
  if ((found.indexes & DeferredIndexes::kDictionaryIndexes) != 0)
    found.entries = unindexed_entries();
  if ((found.indexes & DeferredIndexes::kKeyIndexes) != 0) found.rows = at_opening_.rows;
  return found;
}

// A hash index in the pool is already complete. A hash index in DRAM answers even without the rows
// that it lacks (KeyEntries::lookup).
Status IndexBuild::prepare_lookup(std::size_t key) noexcept {
  const KeyIndex& index = *data_.keys[key];
  if (!index.is_unique()) return prepare_range();
  if ((index.entries().made_at_opening() & DeferredIndexes::kHashIndexes) == 0) return {};
  if (waits_for_all()) return build(DeferredIndexes::kHashIndexes);
  ask_for(static_cast<KeyMask>(1U << key));
  return {};
}

// Ranges are found without the index, too (walk).
Status IndexBuild::prepare_range() noexcept {
  if (waits_for_all()) return build(DeferredIndexes::kOrderedIndexes);
  ask_for(0);
  return {};
}

// Writes are right without the indexes, and maintain them: a writer does not wait for them if a
// thread makes them.
Status IndexBuild::prepare_write() noexcept {
  if (waits_for_all()) return build(DeferredIndexes::kAllIndexes);
  ask_for(kEveryKey);
  return {};
}

Status IndexBuild::build(std::uint8_t indexes) noexcept {
  if ((deferred_.load(std::memory_order_acquire) & indexes) == 0) return {};
  const std::lock_guard guard(mutex_);
  if (!status_.ok()) return status_;
  const std::uint8_t left = deferred_.load(std::memory_order_relaxed) & indexes;
  if (left == 0) return {};
  if (data_.is_dropped()) return no_table();
  const auto start = std::chrono::steady_clock::now();
  RecoveryReport report;
  recovery::Phases phases(report, threads_, {}, stops_);
  Status built;
  const auto make = [&](DeferredIndexes::Kind kind, auto&& run) {
    if ((left & kind) == 0 || !built.ok()) return;
    built = run();
    if (built.ok()) {
      deferred_.fetch_and(static_cast<std::uint8_t>(~kind), std::memory_order_acq_rel);
    } else if (built.code() != StatusCode::kNotFound) {  // dropped: the drop may yet fail
      status_ = built;
      has_failed_.store(true, std::memory_order_relaxed);
    }
  };
  make(DeferredIndexes::kHashIndexes, [&] { return build_hash(phases); });
  if (!is_deferred(DeferredIndexes::kHashIndexes) || has_failed()) release_opening();
  make(DeferredIndexes::kDictionaryIndexes, [&] { return build_dictionaries(phases, report); });
  make(DeferredIndexes::kOrderedIndexes, [&] { return build_ordered(phases); });
  us_.store(us_.load(std::memory_order_relaxed) + microseconds_since(start),
            std::memory_order_relaxed);
  return built;
}

Status IndexBuild::sweep_for_build(recovery::Phases& phases) {
  const std::vector<std::function<Status()>> tasks(phases.threads(), [this] {
    while (!stops_->load(std::memory_order_relaxed) && sweep_.sweep_more()) {
    }
    return Status();
  });
  if (Status s = phases.run_parallel(kIndexesPhase, tasks); !s.ok()) return s;
  if (stops_->load(std::memory_order_relaxed)) return {};
  return sweep_.sweep_all();
}

Status IndexBuild::build_dictionaries(recovery::Phases& phases, RecoveryReport& report) {
  std::vector<columns::Dictionary*> dictionaries;
  data_.columns.for_each_used([&](columns::Column& column) {
    if (column.is_dictionary()) dictionaries.push_back(&column.dictionary());
  });
  return recovery::rebuild_dictionaries(dictionaries, data_.pool, kIndexesPhase, phases, report)
      .status();
}

}  // namespace flugs::engine
