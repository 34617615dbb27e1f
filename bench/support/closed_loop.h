#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "bench/support/clock.h"
#include "flugs/status.h"

namespace flugs::bench {

/// One user of a run: a thread that does one piece of work after the other.
///
/// Thread-safety: prepare and step are called in the user's thread, executed in any.
class ClosedLoopUser {
 public:
  virtual ~ClosedLoopUser() = default;
  /// Before all work. Fails: the run fails with it.
  virtual Status prepare() = 0;
  /// One piece of work. `is_sampled`: it began within the sampling period. Fails: as prepare.
  virtual Status step(bool is_sampled) = 0;

  std::uint64_t executed() const noexcept { return executed_.load(std::memory_order_relaxed); }

 private:
  friend class ClosedLoop;

  std::atomic<std::uint64_t> executed_{0};  ///< steps that ended well
};

struct ClosedLoopOptions {
  double ramp_up_seconds = 0;
  double seconds = 10;  ///< of sampling
  /// Called where sampling begins, and where it has ended, while users work.
  std::function<void()> sampling_begins;
  std::function<void()> sampling_ends;
  /// Told now and then with the seconds gone and the seconds in all; returning false stops the run.
  std::function<bool(double, double)> progress;
};

struct ClosedLoopResult {
  double seconds = 0;                   ///< sampled, as measured
  std::vector<double> steps_by_second;  ///< ramp-up left out
  ProcessorTime processor;              ///< of all threads, while it was sampled
};

/// Runs all users at the same time, without think times, until the sampling period is over.
/// Fails with the first failure of a user.
Result<ClosedLoopResult> run_closed_loop(std::span<const std::unique_ptr<ClosedLoopUser>> users,
                                         const ClosedLoopOptions& options);

}  // namespace flugs::bench
