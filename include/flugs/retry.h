#pragma once

#include <chrono>
#include <cstdint>

#include "flugs/status.h"
#include "flugs/transaction.h"

namespace flugs {

/// How Database::run retries a piece of work.
struct RetryOptions {
  AccessMode mode = AccessMode::kReadWrite;
  Isolation isolation = Isolation::kSnapshot;
  /// Largest number of attempts; 0: as many as `time_limit` allows.
  std::uint32_t attempts_max = 0;
  /// Counts from the call; a running attempt is not cut short. 0: no limit.
  std::chrono::milliseconds time_limit{10000};
  /// The longest pause between two attempts, 1 us to 1 s.
  std::chrono::microseconds pause_max{10000};
  /// How each attempt commits.
  CommitOptions commit = {};
};
static_assert(RetryOptions().pause_max < RetryOptions().time_limit);

/// What Database::run did.
struct RetryReport {
  std::uint32_t attempts = 0;
  std::chrono::microseconds paused{0};  ///< part of the time that was spent in pauses between
                                        ///< attempts
  std::uint64_t commit_timestamp = 0;   ///< as Transaction::commit_timestamp
};

}  // namespace flugs
