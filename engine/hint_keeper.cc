#include "engine/hint_keeper.h"

#include <algorithm>
#include <system_error>

#include "engine/database_core.h"

namespace flugs::engine {

namespace {

// While there is more to do: who waits for the catalogue gets it, which one that takes it again at
// once would keep.
constexpr std::chrono::microseconds kKeeperPause(20);
// Right after opening the first answer comes first, and hints that opening left can wait so long.
constexpr std::chrono::milliseconds kFirstRest(10);

}  // namespace

HintKeeper::HintKeeper(DatabaseCore& core, pmem::Pool& pool, std::chrono::milliseconds interval)
    : core_(core), pool_(pool), interval_(interval) {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  } catch (const std::system_error&) {
    // is_running() says so.
  }
}

void HintKeeper::run(const std::stop_token& stop) noexcept {
  pmem::Persister persister(pool_.medium());
  std::unique_lock lock(mutex_);
  const auto rest = [&](std::chrono::milliseconds time) {
    stopped_.wait_for(lock, stop, time, [] { return false; });
  };
  rest(std::min(interval_, kFirstRest));
  while (!stop.stop_requested()) {
    lock.unlock();
    while (core_.keep_hints(persister) && !stop.stop_requested())
      std::this_thread::sleep_for(kKeeperPause);
    lock.lock();
    rest(interval_);
  }
}

}  // namespace flugs::engine
