#include "engine/background/sweeper.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/thread.h"
#include "pmem/medium/scm_reads.h"
#include "tables/data/table_hints.h"
#include "tables/table/table.h"

namespace flugs::engine {

namespace {

// Pause between two looks at tables that are being dropped.
constexpr std::chrono::milliseconds kDropPause{50};

}  // namespace

Sweeper::Sweeper(std::vector<Table*> tables, EventQueue& events)
    : events_(events), tables_(std::move(tables)) {
  FLUGS_CHECK(std::ranges::count(tables_, nullptr) == 0);
  Result<std::jthread> started =
      start_thread("flugs-sweep", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok()) thread_ = *std::move(started);
}

// The table that lacks such indexes and asked for them first; without `is_wanted`, the first that
// has not asked. Null: there is none.
Table* Sweeper::next_to_build(DeferredIndexes::Kind kind, bool is_wanted) const noexcept {
  Table* next = nullptr;
  for (Table* table : tables_) {
    if (!table->index_build().is_deferred(kind) || table->is_dropped() ||
        table->index_build().has_failed())
      continue;
    const std::int64_t asked = table->index_build().asked_at();
    if ((asked != 0) != is_wanted) continue;
    if (next == nullptr || asked < next->index_build().asked_at()) next = table;
  }
  return next;
}

// Makes one kind of index of one table at a time, since another may become wanted meanwhile. Keys
// come first, because look-ups in them are slow until then. A caller that needs the indexes finds
// damage again.
bool Sweeper::build_next() noexcept {
  constexpr std::array kInTurn{DeferredIndexes::kHashIndexes, DeferredIndexes::kDictionaryIndexes,
                               DeferredIndexes::kOrderedIndexes};
  static_assert((kInTurn[0] | kInTurn[1] | kInTurn[2]) == DeferredIndexes::kAllIndexes);
  for (const bool is_wanted : {true, false})
    for (const DeferredIndexes::Kind kind : kInTurn)
      if (Table* const table = next_to_build(kind, is_wanted); table != nullptr) {
        if (Status s = table->index_build().build(kind); !s.ok())
          tell_failure(*table, "an index could not be made", s);
        return true;
      }
  return false;
}

void Sweeper::tell_failure(const Table& table, const char* what, const Status& status) noexcept {
  events_.post({.kind = EventKind::kBackgroundFailed,
                .table = table.name(),
                .text = what,
                .status = status});
}

void Sweeper::build(const std::stop_token& stop) noexcept {
  while (!stop.stop_requested() && build_next()) {
  }
}

// A table that is being dropped gets no indexes, but its drop may fail: wait, and make them then.
void Sweeper::wait_for_drops(const std::stop_token& stop) noexcept {
  const auto is_being_dropped = [](const Table* table) {
    return table->is_dropped() && !table->is_gone() && table->index_build().is_deferred();
  };
  while (!stop.stop_requested() && std::any_of(tables_.begin(), tables_.end(), is_being_dropped)) {
    sleep_.sleep_for(stop, kDropPause);
    build(stop);
  }
}

void Sweeper::run(const std::stop_token& stop) noexcept {
  constexpr int kLeastPriority = 19;
  sleep_.sleep_for(stop, ThreadSleep::kFirst);
  build(stop);
  wait_for_drops(stop);
  ::setpriority(PRIO_PROCESS, 0, kLeastPriority);  // on Linux for the thread alone
  for (Table* table : tables_) {
    while (!stop.stop_requested() && table->row_sweep().sweep_more()) pmem::begin_scm_task();
    while (!stop.stop_requested() &&
           check_more_entries(table->data(), table->index_build().mutex()))
      pmem::begin_scm_task();
    if (stop.stop_requested()) continue;
    if (Status s = check_hints(table->data(), table->index_build().mutex()); !s.ok())
      tell_failure(*table, "an index in the pool is damaged", s);
  }
}

}  // namespace flugs::engine
