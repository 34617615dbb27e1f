#include "tables/transactions/row_locks.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "base/shared_words.h"

namespace flugs::engine {

namespace {

// How often a waiter checks whether it must stop.
constexpr std::chrono::milliseconds kLook{5};

Status deadlock() {
  return Status(StatusCode::kConflict,
                "deadlock: the transaction that has locked the row waits for this transaction, "
                "directly or through others");
}

}  // namespace

bool RowLocks::is_others(const LockName& name, std::uint32_t slot) const {
  Part& of_name = part(name);
  note_read(SharedWord::kRowLocks, &of_name.counters);
  if (counter(of_name, name).load(std::memory_order_seq_cst) == 0) return false;
  const std::lock_guard guard(of_name.mutex);
  const auto found = of_name.locks.find(name);
  return found != of_name.locks.end() && found->second.holder != slot;
}

bool RowLocks::is_own(const LockName& name, std::uint32_t slot) const {
  Part& of_name = part(name);
  const std::lock_guard guard(of_name.mutex);
  const auto found = of_name.locks.find(name);
  return found != of_name.locks.end() && found->second.holder == slot;
}

std::size_t RowLocks::size() const {
  std::size_t size = 0;
  for (Part& each : parts_) {
    const std::lock_guard guard(each.mutex);
    size += each.locks.size();
  }
  return size;
}

bool RowLocks::closes_cycle(std::uint32_t slot, std::uint32_t other) const noexcept {
  for (std::uint32_t at = other; at != kNobody; at = waits_for_[at])
    if (at == slot) return true;
  return false;
}

// Removing a waiter links its follower to its predecessor; no new cycle can arise.
void RowLocks::leave_queue(Lock& lock, Waiter& waiter) noexcept {
  const std::lock_guard waits_guard(waits_mutex_);
  const auto place = std::find(lock.queue.begin(), lock.queue.end(), &waiter);
  FLUGS_CHECK(place != lock.queue.end());
  if (const auto next = std::next(place); next != lock.queue.end())
    waits_for_[(*next)->slot] = waits_for_[waiter.slot];
  waits_for_[waiter.slot] = kNobody;
  lock.queue.erase(place);
}

Status RowLocks::lock(const LockName& name, std::uint32_t slot, Clock::time_point deadline,
                      FunctionRef<bool()> must_stop, bool& is_new) {
  Part& of_name = part(name);
  std::unique_lock guard(of_name.mutex);
  note_write(SharedWord::kRowLocks, &of_name.mutex);
  const auto [place, is_free] = of_name.locks.try_emplace(name, Lock{slot, {}});
  is_new = is_free;
  if (is_free) {
    note_write(SharedWord::kRowLocks, &of_name.counters);
    counter(of_name, name).fetch_add(1, std::memory_order_seq_cst);
    return {};
  }
  Lock& lock = place->second;  // does not move while a transaction holds it or waits
  if (lock.holder == slot) return {};
  is_new = true;
  if (Clock::now() >= deadline) return Status(StatusCode::kBusy);
  return wait(guard, lock, slot, deadline, must_stop);
}

// The part's mutex is held, except while the waiter sleeps.
Status RowLocks::wait(std::unique_lock<std::mutex>& guard, Lock& lock, std::uint32_t slot,
                      Clock::time_point deadline, FunctionRef<bool()> must_stop) {
  const std::uint32_t before = lock.queue.empty() ? lock.holder : lock.queue.back()->slot;
  {
    const std::lock_guard waits_guard(waits_mutex_);
    FLUGS_DCHECK(waits_for_[slot] == kNobody);  // it waits for one at a time
    if (closes_cycle(slot, before)) return deadlock();
    waits_for_[slot] = before;
  }
  Waiter waiter{slot, false, {}};
  lock.queue.push_back(&waiter);
  while (!waiter.has_it) {
    waiter.got_it.wait_until(guard, std::min(deadline, Clock::now() + kLook));
    if (waiter.has_it) break;
    const bool stops = must_stop();
    if (!stops && Clock::now() < deadline) continue;
    leave_queue(lock, waiter);
    return Status(stops ? StatusCode::kCancelled : StatusCode::kBusy);
  }
  return {};
}

std::optional<std::uint32_t> RowLocks::holder_of(const LockName& name) const {
  Part& of_name = part(name);
  const std::lock_guard guard(of_name.mutex);
  const auto found = of_name.locks.find(name);
  if (found == of_name.locks.end()) return std::nullopt;
  return found->second.holder;
}

void RowLocks::unlock(const LockName& name, std::uint32_t slot) noexcept {
  Part& of_name = part(name);
  const std::lock_guard guard(of_name.mutex);
  note_write(SharedWord::kRowLocks, &of_name.mutex);
  const auto found = of_name.locks.find(name);
  FLUGS_CHECK(found != of_name.locks.end() && found->second.holder == slot);
  Lock& lock = found->second;
  if (lock.queue.empty()) {
    of_name.locks.erase(found);
    note_write(SharedWord::kRowLocks, &of_name.counters);
    FLUGS_DCHECK(counter(of_name, name).load(std::memory_order_relaxed) != 0);
    counter(of_name, name).fetch_sub(1, std::memory_order_seq_cst);
    return;
  }
  Waiter& next = *lock.queue.front();
  lock.queue.pop_front();
  lock.holder = next.slot;
  {
    const std::lock_guard waits_guard(waits_mutex_);
    waits_for_[next.slot] = kNobody;
  }
  next.has_it = true;
  next.got_it.notify_one();  // under the mutex: `next` may vanish as soon as the mutex is free
}

Status RowLocks::begin_waiting(std::uint32_t slot, std::uint32_t other) {
  const std::lock_guard guard(waits_mutex_);
  if (other < waits_for_.size()) {
    if (closes_cycle(slot, other)) return deadlock();
    waits_for_[slot] = other;
  }
  return {};
}

void RowLocks::end_waiting(std::uint32_t slot) noexcept {
  FLUGS_DCHECK(slot < waits_for_.size());
  const std::lock_guard guard(waits_mutex_);
  waits_for_[slot] = kNobody;
}

}  // namespace flugs::engine
