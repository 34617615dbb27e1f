#include "engine/hint_keeper.h"

#include <system_error>

#include "engine/database_core.h"

namespace flugs::engine {

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
  while (!stop.stop_requested()) {
    lock.unlock();
    while (core_.keep_hints(persister) && !stop.stop_requested()) {
    }
    lock.lock();
    stopped_.wait_for(lock, stop, interval_, [] { return false; });
  }
}

}  // namespace flugs::engine
