#pragma once

#include <chrono>
#include <cstdint>

#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs {

/// How Database::run tries a piece of work again.
struct RetryOptions {
  AccessMode mode = AccessMode::kReadWrite;
  Isolation isolation = Isolation::kSnapshot;
  /// How often the work is tried, 0: as often as `time_limit` allows.
  std::uint32_t attempts_max = 0;
  /// From the call on; an attempt that is under way is not cut short. 0: no limit.
  std::chrono::milliseconds time_limit{10000};
  /// The longest pause between two attempts, 1 us to 1 s.
  std::chrono::microseconds pause_max{10000};
};

/// What became of it.
struct RetryReport {
  std::uint32_t attempts = 0;
  std::chrono::microseconds paused{0};  ///< between attempts, of all the time
  std::uint64_t commit_timestamp = 0;   ///< as Transaction::commit_timestamp
};

}  // namespace flugs
