#include "verify/crash/rig/scheduler.h"

#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

namespace flugs::crash {

namespace {

constexpr std::uint32_t kWaitsMax = 20000;

thread_local std::uint32_t thread_number = 0;

}  // namespace

Scheduler::Scheduler(Schedule schedule, pmem::PersistObserver& next,
                     std::function<void()> before_switch)
    : schedule_(std::move(schedule)), next_(next), before_switch_(std::move(before_switch)) {}

void Scheduler::run(const std::vector<std::function<void()>>& threads) {
  is_alive_.assign(threads.size(), true);
  std::vector<std::thread> running;
  running.reserve(threads.size());
  for (std::uint32_t number = 0; number < threads.size(); ++number)
    running.emplace_back([this, number, &threads] { run_thread(number, threads[number]); });
  {
    const std::scoped_lock lock(mutex_);
    running_ = next_after(static_cast<std::uint32_t>(threads.size()) - 1);
  }
  turn_.notify_all();
  for (std::thread& thread : running) thread.join();
}

void Scheduler::run_thread(std::uint32_t number, const std::function<void()>& work) {
  thread_number = number;
  {
    std::unique_lock lock(mutex_);
    turn_.wait(lock, [&] { return running_ == number; });
  }
  wait_observer = this;
  work();
  wait_observer = nullptr;
  is_alive_[number] = false;
  waits_ = 0;
  {
    const std::scoped_lock lock(mutex_);
    running_ = next_after(number);
  }
  turn_.notify_all();
}

std::uint32_t Scheduler::next_after(std::uint32_t thread) const noexcept {
  const auto count = static_cast<std::uint32_t>(is_alive_.size());
  for (std::uint32_t i = 1; i <= count; ++i)
    if (is_alive_[(thread + i) % count]) return (thread + i) % count;
  return kNobody;
}

void Scheduler::pass_turn(std::uint32_t to) {
  const std::uint32_t mine = thread_number;
  std::unique_lock lock(mutex_);
  running_ = to;
  turn_.notify_all();
  turn_.wait(lock, [&] { return running_ == mine; });
}

void Scheduler::point(bool is_flush) {
  waits_ = 0;
  const auto here = static_cast<std::uint32_t>(turns_.size());
  turns_.push_back({thread_number, is_flush});
  while (next_switch_ < schedule_.size() && schedule_[next_switch_].point < here) ++next_switch_;
  if (next_switch_ == schedule_.size() || schedule_[next_switch_].point != here) return;
  const bool is_watched = next_switch_ >= watched_from(schedule_);
  const std::uint32_t to = schedule_[next_switch_++].thread;
  if (to >= is_alive_.size() || to == thread_number || !is_alive_[to]) return;
  if (is_watched) before_switch_();
  pass_turn(to);
}

void Scheduler::pass() {
  const std::uint32_t to = next_after(thread_number);
  if (to != thread_number) pass_turn(to);
}

void Scheduler::on_wait() noexcept {
  if (++waits_ > kWaitsMax) {
    std::fprintf(stderr, "flugs: all threads that are left wait for each other\n");
    std::abort();
  }
  pass();
}

Scheduler::Undisturbed::Undisturbed() noexcept : former_(std::exchange(wait_observer, nullptr)) {}

Scheduler::Undisturbed::~Undisturbed() { wait_observer = former_; }

void Scheduler::on_flush(const void* /*address*/, std::size_t /*bytes*/, pmem::Label /*label*/) {
  std::abort();  // never called: on_flush_by is
}

void Scheduler::on_fence(pmem::Label /*label*/) { std::abort(); }

void Scheduler::on_flush_by(const pmem::Persister& by, const void* address, std::size_t bytes,
                            pmem::Label label) {
  point(true);
  const Undisturbed undisturbed;
  next_.on_flush_by(by, address, bytes, label);
}

void Scheduler::on_fence_by(const pmem::Persister& by, pmem::Label label) {
  point();
  {
    const Undisturbed undisturbed;
    next_.on_fence_by(by, label);
  }
  point();
}

}  // namespace flugs::crash
