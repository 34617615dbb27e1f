#include "pmem/journal/batch_waiters.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "base/check.h"

namespace flugs::pmem {

namespace {

/// The time of a write may grow by this part of it from one write to the next. So a write that the
/// device or the scheduler held up counts little.
constexpr int kGrowthPart = 16;

}  // namespace

void BatchWaiters::sleep(Lock& lock, bool is_in_batch, Returns returns) noexcept {
  Group& group = groups_[is_in_batch ? written_group_ : written_group_ ^ 1];
  group.sleepers += 1;
  group.returning += returns == Returns::kSoon ? 1 : 0;
  const std::uint32_t turn = group.turn.value();
  lock.unlock();
  group.turn.sleep(turn);
}

// A write takes about the same time for one thread as for many. Threads that the last write woke
// often come back soon. If the next write did not wait for them, two groups of threads would take
// turns, and each write would serve half of the threads. While n threads come back in a time t, and
// p threads wait, waiting on pays if n / t > p / (time of a write). The loop yields the processor
// to the threads that come back. It ends at once if all are back, as with a single user.
void BatchWaiters::gather(Lock& lock) noexcept {
  if (came_back() >= served_) return;
  const std::uint64_t served = served_;
  const std::uint64_t behind = behind_;
  std::uint64_t counted = 0;
  Clock::time_point since = write_end_;
  lock.unlock();
  while (true) {
    const std::uint64_t back = came_back();
    if (back >= served) break;
    const Clock::time_point now = Clock::now();
    const auto more = static_cast<std::int64_t>(std::max<std::uint64_t>(back - counted, 1));
    const auto waiting = static_cast<std::int64_t>(std::max<std::uint64_t>(behind + back, 1));
    if (now - since > write_time_ * more / waiting) break;
    if (back != counted) {
      counted = back;
      since = now;
    }
    std::this_thread::yield();
  }
  lock.lock();
}

void BatchWaiters::begin_write(Returns returns) noexcept {
  written_group_ ^= 1;
  groups_[written_group_].returning += returns == Returns::kSoon ? 1 : 0;
  write_begin_ = Clock::now();
}

// The one thread is woken under the mutex. Behind it, a thread could fall asleep in that group for
// a later write, and take the wake-up of the thread that should write.
void BatchWaiters::end_write(Lock& lock, bool is_last) noexcept {
  write_end_ = Clock::now();
  write_time_ = std::min<std::chrono::nanoseconds>(write_end_ - write_begin_,
                                                   write_time_ + write_time_ / kGrowthPart);
  Group& done = groups_[written_group_];
  Group& next = groups_[written_group_ ^ 1];
  FLUGS_CHECK(done.returning <= done.sleepers + 1);  // the writing thread does not sleep
  FLUGS_CHECK(next.returning <= next.sleepers);
  served_ = std::exchange(done.returning, 0);
  behind_ = next.sleepers;
  arrived_before_ = arrived_.load(std::memory_order_relaxed);
  const bool wakes_done = std::exchange(done.sleepers, 0) != 0;
  if (wakes_done) done.turn.change();
  if (next.sleepers != 0) {
    next.sleepers -= 1;  // begin_write counts it
    next.returning -= std::min(next.returning, 1U);
    next.turn.change();
    is_last ? next.turn.wake_all() : next.turn.wake_one();
  }
  lock.unlock();
  if (wakes_done) done.turn.wake_all();
}

}  // namespace flugs::pmem
