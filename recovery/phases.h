#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/crew.h"
#include "flugs/progress.h"
#include "flugs/recovery_report.h"
#include "flugs/status.h"

namespace flugs::recovery {

/// Runs the phases of an opening one after the other, measures each, and writes the report.
/// Thread-safety: one thread; the tasks of a phase run in parallel.
/// Source: SOFORT (DaMoN 2014), section 3.3 and Figure 4.
class Phases {
 public:
  /// `threads` 0: one per processor. When the caller asks to stop, or `stops` becomes true (null:
  /// it does not exist), tasks and phases that have not begun are skipped.
  Phases(RecoveryReport& report, std::uint32_t threads, CallOptions caller,
         const std::atomic<bool>* stops = nullptr);

  std::uint32_t threads() const noexcept { return threads_; }

  /// Fails with kCancelled if the work must stop.
  Status stopped() const;

  /// Runs `work` as phase `name`; `work` returns how many items it went through.
  Status run(const std::string& name, const std::function<Result<std::uint64_t>()>& work);

  /// Runs all tasks of a phase in parallel, in as many threads as start. The first failure is
  /// returned, and tasks that have not begun are skipped. Also fails with kCancelled, and with
  /// kOutOfMemory when a task throws std::bad_alloc.
  Status run_parallel(const std::string& phase, const std::vector<std::function<Status()>>& tasks);

  /// The same, one task after the other, in the thread of the caller.
  Status run_in_turn(const std::string& phase, const std::vector<std::function<Status()>>& tasks);

  /// Writes the total; call it last.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void begin_steps(const std::string& phase, std::size_t count);
  void tell_step(const std::string& phase);

  RecoveryReport& report_;
  std::uint32_t threads_;
  CallOptions caller_;
  const std::atomic<bool>* stops_;
  Clock::time_point start_;
  std::mutex mutex_;  // protects the first failure, the steps below, and calls of progress; a leaf
  std::string step_phase_;
  std::uint64_t steps_done_ = 0;  // tasks of that phase
  std::uint64_t steps_ = 0;
  Crew crew_;  // last: its threads use all of the above
};

}  // namespace flugs::recovery
