#include "engine/sweeper.h"

#include <pthread.h>
#include <sys/resource.h>

#include <system_error>
#include <utility>

#include "engine/table.h"

namespace flugs::engine {

Sweeper::Sweeper(std::vector<Table*> tables) : tables_(std::move(tables)) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {
    // As the class says.
  }
}

void Sweeper::run(const std::stop_token& stop) noexcept {
  constexpr int kLeastPriority = 19;
  ::pthread_setname_np(::pthread_self(), "flugs-sweep");
  // Whoever needs to know of damage asks again.
  for (Table* table : tables_)
    if (!stop.stop_requested()) static_cast<void>(table->build_indexes(Table::kAllIndexes));
  ::setpriority(PRIO_PROCESS, 0, kLeastPriority);  // Linux takes this for the thread alone
  for (Table* table : tables_) {
    while (!stop.stop_requested() && table->sweep_more()) {
    }
    if (!stop.stop_requested()) static_cast<void>(table->check_hints());
  }
}

}  // namespace flugs::engine
