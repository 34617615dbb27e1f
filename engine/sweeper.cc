#include "engine/sweeper.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <system_error>
#include <utility>

#include "engine/table.h"

namespace flugs::engine {

namespace {

// Between two looks at tables that are being dropped.
constexpr std::chrono::milliseconds kDropPause{50};

}  // namespace

Sweeper::Sweeper(std::vector<Table*> tables) : tables_(std::move(tables)) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {
    // As the class says.
  }
}

// The one that was wanted first; else the first that lacks some. Null: none does.
Table* Sweeper::next_to_build() const noexcept {
  Table* next = nullptr;
  for (Table* table : tables_) {
    if (!table->is_unbuilt(Table::kAllIndexes) || table->is_dropped() || table->has_build_failed())
      continue;
    const std::int64_t asked = table->asked_at();
    const std::int64_t first = next == nullptr ? 0 : next->asked_at();
    if (next == nullptr || (asked != 0 && (first == 0 || asked < first))) next = table;
  }
  return next;
}

// One kind at a time: another table may be wanted meanwhile. Whoever needs to know of damage asks
// again.
void Sweeper::build(const std::stop_token& stop) noexcept {
  constexpr std::array kInTurn{Table::kHashIndexes, Table::kDictionaryIndexes,
                               Table::kOrderedIndexes};
  while (!stop.stop_requested()) {
    Table* const table = next_to_build();
    if (table == nullptr) return;
    for (const Table::Indexes kind : kInTurn) {
      if (!table->is_unbuilt(kind)) continue;
      static_cast<void>(table->build_indexes(kind));
      break;
    }
  }
}

// A table that is being dropped gets no indexes, and may stay all the same.
void Sweeper::wait_for_drops(const std::stop_token& stop) noexcept {
  const auto is_being_dropped = [](const Table* table) {
    return table->is_dropped() && !table->is_gone() && table->is_unbuilt();
  };
  while (!stop.stop_requested() && std::any_of(tables_.begin(), tables_.end(), is_being_dropped)) {
    std::unique_lock lock(mutex_);
    stopped_.wait_for(lock, stop, kDropPause, [] { return false; });
    lock.unlock();
    build(stop);
  }
}

void Sweeper::run(const std::stop_token& stop) noexcept {
  constexpr int kLeastPriority = 19;
  ::pthread_setname_np(::pthread_self(), "flugs-sweep");
  build(stop);
  wait_for_drops(stop);
  ::setpriority(PRIO_PROCESS, 0, kLeastPriority);  // Linux takes this for the thread alone
  for (Table* table : tables_) {
    while (!stop.stop_requested() && table->sweep_more()) {
    }
    if (!stop.stop_requested()) static_cast<void>(table->check_hints());
  }
}

}  // namespace flugs::engine
