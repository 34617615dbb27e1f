#include "tools/sql/interrupts.h"

#include <atomic>

namespace flugs::tools {

namespace {

// Used by the handler of the signal.
std::atomic<sqlite3*> running{nullptr};
std::atomic<bool> has_come{false};
static_assert(std::atomic<sqlite3*>::is_always_lock_free);

void interrupt(int) {
  has_come.store(true);
  if (sqlite3* db = running.load(); db != nullptr) sqlite3_interrupt(db);
}

}  // namespace

Interrupts::Interrupts(sqlite3* db) noexcept : before_(running.exchange(db)) {
  struct sigaction action = {};
  action.sa_handler = interrupt;
  sigaction(SIGINT, &action, &action_before_);
}

Interrupts::~Interrupts() {
  sigaction(SIGINT, &action_before_, nullptr);
  running.store(before_);
}

bool Interrupts::take() noexcept { return has_come.exchange(false); }

}  // namespace flugs::tools
