#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "flugs/database.h"
#include "verify/isolation/sessions/history_plan.h"
#include "verify/isolation/sessions/history_rules.h"
#include "verify/isolation/sessions/history_tables.h"

namespace flugs::sessions {

/// One of the sessions of a user. It runs random transactions one after the other, a step at a
/// time, so that a thread can have several under way, and writes down what it does and sees.
/// Thread-safety: one thread.
class HistorySession {
 public:
  struct World {
    Database& database;
    const HistoryTables& tables;
    const HistoryMemory& memory;
    RuleBreaker& breaker;
  };
  /// `number` counts the sessions of all users, `session` those of this one.
  HistorySession(const World& world, isolation::EventLog& log, std::uint32_t number,
                 std::uint32_t session, std::uint64_t seed)
      : world_(world), log_(log), number_(number), session_(session), random_(seed) {}

  /// Begins a transaction, executes its next operation, or ends it. Conflicts abort it. Fails when
  /// the engine gives an answer that it must not give.
  Status step();
  /// Ends the open transaction.
  void stop();

 private:
  Status begin();
  Status finish();
  void abort();
  Status operate();
  Status read(std::uint32_t key);
  Status read_group(std::uint32_t key);
  Status write(std::uint32_t key);
  Status judge(const Status& status);
  Result<Transaction> begin_transaction(AccessMode mode);
  std::uint64_t draw() { return random_(); }
  bool chance(unsigned percent) { return draw() % 100 < percent; }

  World world_;
  isolation::EventLog& log_;
  const std::uint32_t number_;
  const std::uint32_t session_;
  std::mt19937_64 random_;
  Transaction transaction_;
  Transaction spare_;  // begun too early, for BrokenRule::kStaleSnapshot
  std::uint32_t steps_left_ = 0;
  bool is_open_ = false;
  bool only_reads_ = false;
  std::vector<std::uint32_t> elements_;
  std::vector<HistoryTables::Register> registers_;
};

/// Reads every key that was used, and notes what it finds in the log of the reader at the end.
Status read_everything(Database& database, const HistoryMemory& memory);

}  // namespace flugs::sessions
