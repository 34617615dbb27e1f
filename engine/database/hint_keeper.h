#pragma once

#include <chrono>
#include <thread>

#include "engine/background/thread_sleep.h"
#include "pmem/pool/pool.h"

namespace flugs::engine {

class Catalog;

/// Makes the hints of new dictionary entries durable (Dictionary::keep_hints) in a thread of its
/// own, so that commits need not do it, and opening finds few entries without hints.
/// Thread-safety: any thread, except creating and destroying.
class HintKeeper {
 public:
  /// `catalog` is used until the object is gone.
  HintKeeper(Catalog& catalog, pmem::Pool& pool, std::chrono::milliseconds interval);
  /// False when the thread could not be started: then commits must keep hints.
  bool is_running() const noexcept { return thread_.joinable(); }

 private:
  void run(const std::stop_token& stop) noexcept;

  Catalog& catalog_;
  pmem::Pool& pool_;
  const std::chrono::milliseconds interval_;
  ThreadSleep sleep_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace flugs::engine
