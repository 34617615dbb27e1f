#include "tools/sql/interrupts.h"

#include <atomic>
#include <ctime>

namespace flugs::tools {

namespace {

// Used by the handler of the signal.
std::atomic<sqlite3*> running{nullptr};
std::atomic<bool> has_come{false};
static_assert(std::atomic<sqlite3*>::is_always_lock_free);

/// Wakes a thread at the prompt from its wait for a key. The signal may come before the wait
/// begins: so a timer wakes it again and again, until `take`.
timer_t waker;
bool has_waker = false;

void wake_every(long nanoseconds) noexcept {
  if (!has_waker) return;
  const timespec each{0, nanoseconds};
  const itimerspec when{each, each};
  timer_settime(waker, 0, &when, nullptr);
}

void interrupt(int) {
  constexpr long kWakeNanoseconds = 20'000'000;
  has_come.store(true);
  if (sqlite3* db = running.load(); db != nullptr)
    sqlite3_interrupt(db);
  else
    wake_every(kWakeNanoseconds);
}

/// The handler of the timer's signal. The signal itself ends a system call.
void nothing(int) {}

}  // namespace

Interrupts::Interrupts(sqlite3* db) noexcept : before_(running.exchange(db)) {
  struct sigaction action = {};
  action.sa_handler = interrupt;
  sigaction(SIGINT, &action, &action_before_);
  if (has_waker) return;
  action.sa_handler = nothing;
  sigaction(SIGALRM, &action, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGALRM;
  has_waker = timer_create(CLOCK_MONOTONIC, &event, &waker) == 0;
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &action_before_, nullptr);
  running.store(before_);
}

bool Interrupts::take() noexcept {
  wake_every(0);
  return has_come.exchange(false);
}

}  // namespace flugs::tools
