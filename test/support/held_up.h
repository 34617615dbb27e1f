#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "flugs/database.h"
#include "test/support/temporary_database.h"

namespace flugs::test {

/// Runs `call` in a thread of its own, and `meanwhile` while an open transaction keeps the call
/// from ending. Returns what the call returned.
template <typename Call, typename Meanwhile>
Status held_up(Database& database, Call&& call, Meanwhile&& meanwhile) {
  std::optional<Transaction> holds(must(database.begin()));
  Status done;
  std::thread caller([&] { done = call(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  meanwhile();
  holds.reset();
  caller.join();
  return done;
}

}  // namespace flugs::test
