#include "pmem/journal/soon_writer.h"

#include <algorithm>
#include <utility>

#include "base/thread.h"

namespace flugs::pmem {

namespace {

/// Wants whose deadlines differ by less are counted together, with the earlier deadline.
constexpr std::chrono::microseconds kTogether{500};
/// The write begins when this part of the time is over: the device needs the rest.
constexpr int kStartPart = 2;

}  // namespace

SoonWriter::~SoonWriter() = default;  // the thread ends when it has no work left

/// Under mutex_.
bool SoonWriter::start() noexcept {
  if (thread_.joinable()) return true;
  Result<std::jthread> started =
      start_thread("flugs-soon", [this](const std::stop_token& stop) { run(stop); });
  if (started.ok()) thread_ = *std::move(started);
  return thread_.joinable();
}

/// Under mutex_.
void SoonWriter::note(JournalPlace place, Clock::time_point start, Clock::time_point deadline) {
  needed_ = std::max(needed_, place);
  const bool joins = !wanted_.empty() && wanted_.back().deadline <= deadline &&
                     deadline - wanted_.back().deadline < kTogether;
  if (joins) {
    wanted_.back().place = std::max(wanted_.back().place, place);
    wanted_.back().start = std::min(wanted_.back().start, start);
    ++wanted_.back().count;
  } else {
    wanted_.push_back({place, start, deadline, 1});
  }
  if (start >= next_start_) return;
  next_start_ = start;
  changed_.notify_one();
}

Status SoonWriter::want(JournalPlace place, std::chrono::microseconds within, bool is_much) {
  const Clock::time_point now = Clock::now();
  {
    const std::lock_guard guard(mutex_);
    ++counts_.wanted;
    if (journal_.is_durable(place)) return {};
    if (start()) {
      note(place, is_much ? now : now + within / kStartPart, now + within);
      return {};
    }
  }
  return journal_.wait_durable(place);
}

void SoonWriter::begin(JournalPlace place) {
  const std::lock_guard guard(mutex_);
  if (place <= begun_ || !start()) return;
  begun_ = place;
  needed_ = std::max(needed_, place);
  next_start_ = Clock::time_point::min();
  changed_.notify_one();
}

void SoonWriter::when_durable(JournalPlace place, std::function<void(const Status&)> callback) {
  if (!journal_.is_durable(place)) {
    const std::lock_guard guard(mutex_);
    if (start()) {
      callbacks_.push_back({place, std::move(callback)});
      needed_ = std::max(needed_, place);
      next_start_ = std::min(next_start_, Clock::now());
      changed_.notify_one();
      return;
    }
  }
  callback(journal_.wait_durable(place));
}

void SoonWriter::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested() || has_work()) {
    if (stop.stop_requested() || Clock::now() >= next_start_) {
      write(lock);
      continue;
    }
    const Clock::time_point next = next_start_;
    const auto is_sooner = [&] { return next_start_ < next; };
    if (next == Clock::time_point::max()) {
      changed_.wait(lock, stop, is_sooner);
    } else {
      changed_.wait_until(lock, stop, next, is_sooner);
    }
  }
}

void SoonWriter::write(std::unique_lock<std::mutex>& lock) {
  const JournalPlace place = needed_;
  lock.unlock();
  const Status status = journal_.wait_durable(place);
  lock.lock();
  std::vector<Callback> due = take_due(status);
  next_start_ = Clock::time_point::max();
  for (const Wanted& wanted : wanted_) next_start_ = std::min(next_start_, wanted.start);
  const bool is_behind = status.ok() && !journal_.is_durable(begun_);
  if (!callbacks_.empty() || is_behind) next_start_ = Clock::now();
  if (due.empty()) return;
  lock.unlock();
  for (const Callback& callback : due)
    callback.function(journal_.is_durable(callback.place) ? Status() : status);
  due.clear();  // what the functions own may end in their destructors
  lock.lock();
}

/// Under mutex_. After a failure nothing becomes durable any more.
std::vector<SoonWriter::Callback> SoonWriter::take_due(const Status& status) {
  const auto is_due = [&](JournalPlace place) {
    return !status.ok() || journal_.is_durable(place);
  };
  const Clock::time_point now = Clock::now();
  std::erase_if(wanted_, [&](const Wanted& wanted) {
    if (!is_due(wanted.place)) return false;
    const bool is_in_time = journal_.is_durable(wanted.place) && now <= wanted.deadline;
    counts_.late += is_in_time ? 0 : wanted.count;
    return true;
  });
  const auto first_due =
      std::stable_partition(callbacks_.begin(), callbacks_.end(),
                            [&](const Callback& callback) { return !is_due(callback.place); });
  std::vector<Callback> due(std::make_move_iterator(first_due),
                            std::make_move_iterator(callbacks_.end()));
  callbacks_.erase(first_due, callbacks_.end());
  return due;
}

SoonWriter::Counts SoonWriter::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

}  // namespace flugs::pmem
