#include "base/crew.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <stop_token>
#include <utility>

#include "base/check.h"
#include "base/thread.h"

namespace flugs {

namespace {

// Number of pauses before a thread sleeps: some 50 us on Intel's processors, a quarter of that on
// AMD's. The kernel takes some 50 us to wake a thread, as long as a small query takes, and the next
// call often comes sooner.
constexpr int kLooks = 1000;

template <typename Condition>
void look_for(Condition holds) noexcept {
  for (int look = 0; look < kLooks && !holds(); ++look) __builtin_ia32_pause();
}

}  // namespace

Crew::~Crew() {
  {
    const std::lock_guard guard(mutex_);
    FLUGS_CHECK(offered_ == nullptr);  // no call may last
    stops_ = true;
    ++offers_;
  }
  changed_.notify_all();
}

void Crew::run(std::uint32_t workers, Work work) {
  if (workers <= 1) return work(0);
  Job job{work, workers};
  offer(job);
  call(job, 0);
  withdraw(job);
  if (job.failure != nullptr) std::rethrow_exception(job.failure);
}

void Crew::for_each(std::uint32_t workers, std::size_t count, FunctionRef<void(std::size_t)> task) {
  std::atomic<std::size_t> next{0};
  const auto take_tasks = [&](std::uint32_t /*worker*/) {
    try {
      for (std::size_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) task(i);
    } catch (...) {
      next.store(count);
      throw;
    }
  };
  run(static_cast<std::uint32_t>(std::min<std::size_t>(workers, count)), take_tasks);
}

std::size_t Crew::thread_count() const {
  const std::lock_guard guard(mutex_);
  return threads_.size();
}

void Crew::offer(Job& job) {
  {
    const std::lock_guard guard(mutex_);
    FLUGS_CHECK(job.workers >= 2);
    job.next = std::exchange(offered_, &job);
    wanted_ += job.workers - 1;
    while (waiting_ < wanted_ && start_thread()) {
    }
    ++offers_;
  }
  changed_.notify_all();
}

// From here on no thread begins with the job; waits for the calls that have begun.
void Crew::withdraw(Job& job) {
  take_back(job);
  look_for([&job] { return job.running.load(std::memory_order_acquire) == 0; });
  std::unique_lock lock(mutex_);
  job.ended.wait(lock, [&job] { return job.running == 0; });
}

void Crew::take_back(Job& job) {
  const std::lock_guard guard(mutex_);
  for (Job** place = &offered_; *place != nullptr; place = &(*place)->next) {
    if (*place != &job) continue;
    FLUGS_CHECK(wanted_ >= job.workers - job.begun);
    *place = job.next;
    wanted_ -= job.workers - job.begun;
    break;
  }
}

void Crew::call(Job& job, std::uint32_t worker) noexcept {
  try {
    job.work(worker);
  } catch (...) {
    const std::lock_guard guard(mutex_);
    if (job.failure == nullptr) job.failure = std::current_exception();
  }
}

// Under mutex_.
bool Crew::start_thread() noexcept {
  try {
    threads_.reserve(threads_.size() + 1);
    Result<std::jthread> started =
        flugs::start_thread("flugs-crew", [this](const std::stop_token&) { help(); });
    if (!started.ok()) return false;
    threads_.push_back(*std::move(started));
  } catch (const std::bad_alloc&) {
    return false;
  }
  ++waiting_;
  return true;
}

void Crew::help() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t seen = offers_;
    if (!stops_ && offered_ == nullptr) {
      lock.unlock();
      look_for([&] { return offers_.load(std::memory_order_relaxed) != seen; });
      lock.lock();
    }
    changed_.wait(lock, [this] { return stops_ || offered_ != nullptr; });
    if (stops_) return;
    Job& job = *offered_;
    const std::uint32_t worker = job.begun++;
    FLUGS_CHECK(worker < job.workers && wanted_ != 0 && waiting_ != 0);
    if (job.begun == job.workers) offered_ = job.next;
    ++job.running;
    --wanted_;
    --waiting_;
    lock.unlock();
    call(job, worker);
    lock.lock();
    ++waiting_;
    FLUGS_CHECK(job.running != 0);
    // Under the mutex: the job may be gone as soon as the mutex is free.
    if (--job.running == 0) job.ended.notify_one();
  }
}

}  // namespace flugs
