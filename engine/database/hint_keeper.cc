#include "engine/database/hint_keeper.h"

#include <algorithm>

#include "base/check.h"
#include "base/thread.h"
#include "engine/database/catalog.h"
#include "pmem/medium/scm_reads.h"

namespace flugs::engine {

namespace {

// A pause while there is more to do: without it the keeper would take the mutex again at once, and
// threads that wait for it would not get it.
constexpr std::chrono::microseconds kKeeperPause(20);
// Hints that opening left may wait longer than the first work of other threads.
constexpr std::chrono::milliseconds kFirstSleep = 2 * ThreadSleep::kFirst;

}  // namespace

HintKeeper::HintKeeper(Catalog& catalog, pmem::Pool& pool, std::chrono::milliseconds interval)
    : catalog_(catalog), pool_(pool), interval_(interval) {
  FLUGS_CHECK(interval.count() > 0);
  Result<std::jthread> started =
      start_thread("flugs-pools", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok()) thread_ = *std::move(started);
}

void HintKeeper::run(const std::stop_token& stop) noexcept {
  pmem::Persister persister(pool_.medium());
  sleep_.sleep_for(stop, std::min(interval_, kFirstSleep));
  while (!stop.stop_requested()) {
    pmem::begin_scm_task();
    while (catalog_.keep_hints(persister) && !stop.stop_requested())
      std::this_thread::sleep_for(kKeeperPause);
    sleep_.sleep_for(stop, interval_);
  }
}

}  // namespace flugs::engine
