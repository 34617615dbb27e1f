#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "bench/support/closed_loop.h"
#include "bench/support/histogram.h"
#include "bench/ycsb/ycsb_request.h"
#include "bench/ycsb/ycsb_session.h"

namespace flugs::bench {

inline constexpr std::uint32_t kYcsbUsersMax = 64;

/// A run of YCSB on any database.
struct YcsbRunOptions {
  YcsbRows rows;
  YcsbMix mix;
  std::uint32_t users = 1;
  std::uint64_t seed = 1;
  ClosedLoopOptions loop;
};

/// What became of one type's operations that began within the sampling period.
struct YcsbTypeResult {
  std::uint64_t executed = 0;
  std::uint64_t retries = 0;  ///< attempts that ended with a conflict, and were begun again
  std::uint64_t rows = 0;     ///< read
  Histogram latency;          ///< of those executed, retries included
};

struct YcsbRunResult {
  ClosedLoopResult loop;
  std::array<YcsbTypeResult, kYcsbTypes> types;
  Histogram latency;           ///< of all types
  std::uint64_t inserted = 0;  ///< rows, ramp-up included
  std::uint64_t checksum = 0;  ///< of everything read

  std::uint64_t executed() const noexcept;
  std::uint64_t retries() const noexcept;
  std::uint64_t rows_read() const noexcept;
  /// One of these counts per second; 0 when nothing was sampled.
  double per_second(std::uint64_t count) const noexcept;
};

/// Gives the session of one user; called in its thread.
using MakeYcsbSession = std::function<Result<std::unique_ptr<YcsbSession>>(std::uint32_t user)>;

/// Fails with the first failure of an operation that must not fail, or of making a session.
Result<YcsbRunResult> run_ycsb(const MakeYcsbSession& make, const YcsbRunOptions& options);

}  // namespace flugs::bench
