#include "recovery/phases.h"

#include <new>

#include "base/elapsed.h"
#include "base/long_call.h"
#include "base/processors.h"
#include "pmem/medium/scm_reads.h"

namespace flugs::recovery {

Phases::Phases(RecoveryReport& report, std::uint32_t threads, CallOptions caller,
               const std::atomic<bool>* stops)
    : report_(report),
      threads_(threads != 0 ? threads : processors()),
      caller_(std::move(caller)),
      stops_(stops),
      start_(Clock::now()) {
  report_.threads = threads_;
}

Status Phases::run(const std::string& name, const std::function<Result<std::uint64_t>()>& work) {
  const Clock::time_point start = Clock::now();
  if (Status s = stopped(); !s.ok()) return s;
  pmem::begin_scm_task();
  Result<std::uint64_t> items = work();
  if (!items.ok()) return std::move(items).status();
  report_.phases.push_back({name, microseconds_since(start), *items});
  return {};
}

Status Phases::stopped() const {
  if (stops_ != nullptr && stops_->load(std::memory_order_relaxed))
    return Status(StatusCode::kCancelled, "the database is being closed");
  return caller_.stop.stop_requested() ? stopped_by_caller("opening") : Status();
}

Status Phases::run_parallel(const std::string& phase,
                            const std::vector<std::function<Status()>>& tasks) {
  if (threads_ == 1 || tasks.size() <= 1) return run_in_turn(phase, tasks);
  Status first_failure;
  std::atomic<bool> failed{false};
  begin_steps(phase, tasks.size());
  const auto run_one = [&](const std::function<Status()>& task) {
    if (failed.load(std::memory_order_relaxed)) return;
    pmem::begin_scm_task();
    Status s = stopped();
    if (s.ok()) s = task();
    const std::lock_guard guard(mutex_);
    if (!s.ok() && first_failure.ok()) {
      first_failure = std::move(s);
      failed.store(true, std::memory_order_relaxed);
    }
    tell_step(phase);
  };
  try {
    crew_.for_each(threads_, tasks.size(), [&](std::size_t i) { run_one(tasks[i]); });
  } catch (const std::bad_alloc&) {
    return Status(StatusCode::kOutOfMemory, phase + ": the process has no more memory");
  }
  return first_failure;
}

Status Phases::run_in_turn(const std::string& phase,
                           const std::vector<std::function<Status()>>& tasks) {
  begin_steps(phase, tasks.size());
  for (const auto& task : tasks) {
    pmem::begin_scm_task();
    if (Status s = stopped(); !s.ok()) return s;
    if (Status s = task(); !s.ok()) return s;
    tell_step(phase);
  }
  return {};
}

// A phase may run several lists of tasks, and none of them knows of the next: so the counts of a
// phase only grow.
void Phases::begin_steps(const std::string& phase, std::size_t count) {
  if (phase != step_phase_) steps_done_ = steps_ = 0;
  step_phase_ = phase;
  steps_ += count;
}

void Phases::tell_step(const std::string& phase) {
  ++steps_done_;
  if (caller_.progress) caller_.progress({phase, steps_done_, steps_});
}

void Phases::finish() { report_.total_us = microseconds_since(start_); }

}  // namespace flugs::recovery
