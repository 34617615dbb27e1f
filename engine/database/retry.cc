// Trying a transaction again until it commits.

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/check.h"
#include "base/deadline.h"
#include "base/shared_words.h"
#include "engine/database/database_core.h"
#include "engine/database/durable_tokens.h"
#include "engine/database/retry_queue.h"
#include "flugs/retry.h"

namespace flugs::engine {

namespace {

using Clock = RetryQueue::Clock;

/// A random number below `bound`, different for each thread: pauses of threads must not be the
/// same.
std::uint64_t random_below(std::uint64_t bound) {
  thread_local std::minstd_rand random{std::random_device{}()};
  return bound == 0 ? 0 : random() % bound;
}

// Failures that may not happen again: another transaction was first, the delta is full, all slots
// are taken, a merge ended the transaction.
bool is_worth_another(StatusCode code, bool ended_by_merge) noexcept {
  return code == StatusCode::kConflict || code == StatusCode::kBusy ||
         code == StatusCode::kTooManyTransactions ||
         (code == StatusCode::kCancelled && ended_by_merge);
}

Status check_options(const RetryOptions& options) {
  if (options.pause_max < std::chrono::microseconds(1) ||
      options.pause_max > std::chrono::seconds(1))
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("pause_max is {} us, allowed are 1 to 1000000", options.pause_max.count()));
  if (options.time_limit < std::chrono::milliseconds(0))
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("time_limit is {} ms, allowed are 0 ms and more", options.time_limit.count()));
  return {};
}

}  // namespace

RetryQueue::Place::~Place() {
  if (number_ == 0) return;
  {
    const std::lock_guard guard(queue_.mutex_);
    auto& waiting = queue_.waiting_;
    const auto place = std::lower_bound(waiting.begin(), waiting.end(), number_);
    FLUGS_CHECK(place != waiting.end() && *place == number_);
    waiting.erase(place);
    if (queue_.turn_.load(std::memory_order_relaxed) != number_) return;
    queue_.turn_.store(0, std::memory_order_relaxed);
  }
  queue_.turn_ended_.notify_all();
}

Clock::duration RetryQueue::Place::wait_for_turn() {
  // A stale value costs one attempt, to which the work that has the turn may lose.
  note_read(SharedWord::kRetryQueue, &queue_.turn_);
  const std::uint64_t turn = queue_.turn_.load(std::memory_order_relaxed);
  if (__builtin_expect(turn == 0, 1) || turn == number_) return {};
  const Clock::time_point start = Clock::now();
  std::unique_lock lock(queue_.mutex_);
  queue_.turn_ended_.wait_for(lock, kTurnPatience, [&] {
    const std::uint64_t now = queue_.turn_.load(std::memory_order_relaxed);
    return now == 0 || now == number_;
  });
  return Clock::now() - start;
}

// Enters the work if it is not in the queue. Returns how many are before it.
std::size_t RetryQueue::enter_or_find(std::uint64_t& number) {
  if (number == 0) {
    number = ++last_number_;
    FLUGS_DCHECK(waiting_.empty() || waiting_.back() < number);
    waiting_.push_back(number);
    return waiting_.size() - 1;
  }
  FLUGS_DCHECK(number <= last_number_);
  const auto place = std::lower_bound(waiting_.begin(), waiting_.end(), number);
  FLUGS_CHECK(place != waiting_.end() && *place == number);
  return static_cast<std::size_t>(place - waiting_.begin());
}

// With n before it, and each of them needs about as long as this one, the work pauses for n
// attempts on average. The first in the queue pauses only to let the transaction that it met end,
// which may have lost its processor: the more often it fails, the longer it pauses, up to two
// milliseconds.
Clock::duration RetryQueue::Place::pause(Clock::duration spent, Clock::duration pause_max,
                                         Clock::time_point deadline) {
  ++failures_;
  std::size_t before = 0;
  {
    const std::lock_guard guard(queue_.mutex_);
    note_write(SharedWord::kRetryQueue, &queue_.mutex_);
    before = queue_.enter_or_find(number_);
    if (before == 0 && failures_ >= kFailuresBeforeTurn)
      queue_.turn_.store(number_, std::memory_order_relaxed);
  }
  const Clock::time_point start = Clock::now();
  constexpr Clock::duration kLeast = std::chrono::microseconds(2);
  constexpr std::uint32_t kDoublings = 10;
  static_assert(kDoublings < 31);  // bits of an int
  const Clock::duration own = kLeast * (1 << std::min(failures_, kDoublings));
  const Clock::duration behind =
      std::max(spent, kLeast) * static_cast<int>(2 * std::min<std::size_t>(before, 1000));
  const Clock::duration longest = std::min(pause_max, std::max(own, behind));
  FLUGS_CHECK(longest >= Clock::duration::zero());
  const Clock::duration drawn(random_below(static_cast<std::uint64_t>(longest.count()) + 1));
  if (drawn < std::chrono::microseconds(50)) {
    do std::this_thread::yield();
    while (Clock::now() < start + drawn);
  } else {
    std::this_thread::sleep_until(std::min(start + drawn, deadline));
  }
  return Clock::now() - start;
}

std::size_t RetryQueue::size() const {
  const std::lock_guard guard(mutex_);
  return waiting_.size();
}

Status DatabaseCore::run_once(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                              RetryReport& report, bool& ended_by_merge) {
  ++report.attempts;
  Result<Transaction> transaction = begin(options.mode, options.isolation);
  if (!transaction.ok()) return std::move(transaction).status();
  Status done = work(*transaction);
  // Only the last attempt needs words; with a time limit, each may be the last.
  const bool may_be_last = options.time_limit.count() != 0 ||
                           (options.attempts_max != 0 && report.attempts >= options.attempts_max);
  if (may_be_last && done.code() == StatusCode::kConflict && done.message().empty())
    if (const std::optional<Conflict> met = transaction->conflict())
      done = Status(StatusCode::kConflict, met->message);
  ended_by_merge =
      transaction->is_open() && transaction->context_->ending.ended_by() == EndedBy::kMerge;
  if (done.ok() && transaction->is_open())
    done = transaction->commit(options.commit);  // else `work` ended it
  report.commit_timestamp = transaction->commit_timestamp();
  return done;
}

Status DatabaseCore::run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                         RetryReport* report_out) {
  RetryReport unwanted;
  RetryReport& report = report_out == nullptr ? unwanted : *report_out;
  report = {};
  if (Status s = check_options(options); !s.ok()) return s;
  if (Status s = durable_tokens().check(options.commit); !s.ok()) return s;
  const Clock::time_point begun = Clock::now();
  const bool has_limit = options.time_limit.count() != 0;
  const Clock::time_point deadline =
      has_limit ? deadline_after(begun, options.time_limit) : Clock::time_point::max();
  RetryQueue::Place place(retries_);
  for (;;) {
    const Clock::duration waited = place.wait_for_turn();
    const Clock::time_point start = Clock::now();
    bool ended_by_merge = false;
    Status done = run_once(work, options, report, ended_by_merge);
    const Clock::time_point end = Clock::now();
    report.paused += std::chrono::duration_cast<std::chrono::microseconds>(waited);
    if (done.ok() || !is_worth_another(done.code(), ended_by_merge)) return done;
    const bool is_late = end >= deadline;
    if (is_late || (options.attempts_max != 0 && report.attempts >= options.attempts_max))
      return done.with_message(fmt::format(
          "given up after {} attempts in {} ms; the last attempt failed: {}", report.attempts,
          std::chrono::duration_cast<std::chrono::milliseconds>(end - begun).count(),
          done.message().empty() ? to_string(done.code()) : done.message()));
    report.paused += std::chrono::duration_cast<std::chrono::microseconds>(
        place.pause(end - start, options.pause_max, deadline));
  }
}

}  // namespace flugs::engine
