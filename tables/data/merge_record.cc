#include "tables/data/merge_record.h"

#include <fmt/format.h>

#include <utility>

#include "base/check.h"
#include "base/crew.h"

namespace flugs {

std::string_view to_string(MergeState state) noexcept {
  switch (state) {
    case MergeState::kOff:
      return "off";
    case MergeState::kNotLookedAt:
      return "not looked at yet";
    case MergeState::kMerging:
      return "merging";
    case MergeState::kNothingToMerge:
      return "nothing to merge";
    case MergeState::kDeltaSmall:
      return "delta small";
    case MergeState::kWritten:
      return "full chunks are being written to";
    case MergeState::kProcessorsBusy:
      return "processors busy";
    case MergeState::kOldTransaction:
      return "old transaction";
    case MergeState::kFailed:
      return "failed";
  }
  return "unknown";
}

namespace engine {

namespace {

constexpr std::chrono::milliseconds kIntervalMin{10};
constexpr std::chrono::milliseconds kIntervalMax = std::chrono::hours(24);
constexpr std::chrono::milliseconds kWritePatienceMax = std::chrono::hours(24);

Status refused(const char* what, std::uint64_t found, std::uint64_t least, std::uint64_t most) {
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("merge policy: {} is {}, allowed are {} to {}", what, found, least, most));
}

bool changed_something(const MergeReport& report) {
  return report.chunks_merged + report.groups_merged + report.chunks_emptied != 0;
}

}  // namespace

MergeRecord::Work::Work(MergeRecord& record) : record_(record) {
  const std::lock_guard guard(record_.mutex_);
  FLUGS_CHECK(!record_.works_);  // one merge of a table at a time
  record_.work_since_ = Clock::now();
  record_.works_ = true;
}

MergeRecord::Work::~Work() {
  const std::lock_guard guard(record_.mutex_);
  record_.status_.seconds +=
      std::chrono::duration<double>(Clock::now() - record_.work_since_).count();
  record_.works_ = false;
}

Status MergeRecord::check(const MergePolicy& policy) {
  if (policy.dead_percent < 1 || policy.dead_percent > 100)
    return refused("dead_percent", policy.dead_percent, 1, 100);
  if (policy.waste_percent < 1 || policy.waste_percent > 100)
    return refused("waste_percent", policy.waste_percent, 1, 100);
  if (policy.short_percent > 100) return refused("short_percent", policy.short_percent, 0, 100);
  if (policy.written_percent > 100)
    return refused("written_percent", policy.written_percent, 0, 100);
  if (policy.idle_percent > 100) return refused("idle_percent", policy.idle_percent, 0, 100);
  if (policy.threads > Crew::kWorkersMax)
    return refused("threads", policy.threads, 0, Crew::kWorkersMax);
  if (policy.interval < kIntervalMin || policy.interval > kIntervalMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("merge policy: interval is {} ms, allowed are {} to {}",
                              policy.interval.count(), kIntervalMin.count(), kIntervalMax.count()));
  if (policy.write_patience.count() < 0 || policy.write_patience > kWritePatienceMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("merge policy: write_patience is {} ms, allowed are 0 to {}",
                              policy.write_patience.count(), kWritePatienceMax.count()));
  return {};
}

MergePolicy MergeRecord::policy() const {
  const std::lock_guard guard(mutex_);
  return policy_;
}

void MergeRecord::set_policy(const MergePolicy& policy) {
  const std::lock_guard guard(mutex_);
  policy_ = policy;
  status_.state = policy.automatic ? MergeState::kNotLookedAt : MergeState::kOff;
  status_.reason = to_string(status_.state);
}

// A policy that was changed meanwhile decides: without automatic merges the state stays.
void MergeRecord::set_state(MergeState state, std::string reason) {
  const std::lock_guard guard(mutex_);
  if (!policy_.automatic) return;
  status_.state = state;
  status_.reason = std::move(reason);
}

void MergeRecord::note_failure(const Status& status) {
  const std::lock_guard guard(mutex_);
  ++status_.failures;
  status_.last_failure = status.to_string();
}

void MergeRecord::note_merge(const MergeReport& report, const Status& status) {
  if (!status.ok()) note_failure(status);
  if (!changed_something(report)) return;
  const std::lock_guard guard(mutex_);
  ++status_.merges;
  status_.last = report;
}

MergeStatus MergeRecord::status() const {
  const std::lock_guard guard(mutex_);
  MergeStatus status = status_;
  if (works_) status.seconds += std::chrono::duration<double>(Clock::now() - work_since_).count();
  status.writes_refused = writes_refused_.load(std::memory_order_relaxed);
  return status;
}

}  // namespace engine

}  // namespace flugs
