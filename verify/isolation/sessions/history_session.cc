#include "verify/isolation/sessions/history_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace flugs::sessions {

namespace {

// Percent of transactions: those that only read, those that their user aborts, and those with more
// operations than most.
constexpr unsigned kReadersPercent = 25;
constexpr unsigned kAbortsPercent = 4;
constexpr unsigned kLongPercent = 8;
constexpr std::uint32_t kStepsMax = 6;
constexpr std::uint32_t kLongStepsMax = 24;
// Percent of operations.
constexpr unsigned kWritesPercent = 45;
// Percent of reads of a list, and of a register.
constexpr unsigned kPointsPercent = 30;
constexpr unsigned kGroupsPercent = 25;
// Percent of reads of a group: scans, which go through the whole table.
constexpr unsigned kScansPercent = 2;
// Percent of commits, with BrokenRule::kForgottenCommit.
constexpr unsigned kForgottenPercent = 2;
constexpr std::uint32_t kKeysOfLastReader = 64;

std::uint64_t history_now_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

Isolation isolation_of(const HistoryPlan& plan) noexcept {
  switch (plan.level) {
    case isolation::Level::kReadCommitted:
      return Isolation::kReadCommitted;
    case isolation::Level::kSnapshot:
    case isolation::Level::kStrongSnapshot:
      return Isolation::kSnapshot;
    case isolation::Level::kSerializable:
    case isolation::Level::kStrictSerializable:
      break;
  }
  return plan.broken == BrokenRule::kUnaskedReads ? Isolation::kSnapshot : Isolation::kSerializable;
}

}  // namespace

Result<Transaction> HistorySession::begin_transaction(AccessMode mode) {
  return world_.database.begin(mode, isolation_of(world_.memory.plan()));
}

// Users must live with conflicts, and with a merge that asks the transaction to end. With a broken
// rule the engine may see impossible states; then only the checker's verdict counts.
Status HistorySession::judge(const Status& status) {
  if (status.ok()) return {};
  abort();
  // With read committed a row may be another version, or be there, at the second call of a write.
  const bool is_moving = world_.memory.plan().level == isolation::Level::kReadCommitted;
  const bool is_expected = status.code() == StatusCode::kConflict ||
                           status.code() == StatusCode::kCancelled ||
                           (is_moving && status.code() == StatusCode::kNotFound) ||
                           (is_moving && status.code() == StatusCode::kAlreadyExists) ||
                           world_.breaker.rule() != BrokenRule::kNone;
  return is_expected ? Status() : status;
}

Status HistorySession::begin() {
  only_reads_ = chance(kReadersPercent);
  steps_left_ =
      1 + static_cast<std::uint32_t>(draw() % (chance(kLongPercent) ? kLongStepsMax : kStepsMax));
  const bool is_stale = world_.breaker.rule() == BrokenRule::kStaleSnapshot;
  // A session that will write nothing may have a snapshot that costs less.
  const AccessMode mode =
      only_reads_ && !is_stale && chance(50) ? AccessMode::kReadOnly : AccessMode::kReadWrite;
  log_.begin(session_, history_now_ns());
  is_open_ = true;
  Result<Transaction> begun = begin_transaction(mode);
  if (!begun.ok()) {
    log_.end(session_, false, history_now_ns());
    is_open_ = false;
    return std::move(begun).status();
  }
  transaction_ = std::move(*begun);
  if (is_stale && spare_.is_open()) std::swap(transaction_, spare_);
  if (is_stale && !spare_.is_open()) {
    Result<Transaction> spare = begin_transaction(AccessMode::kReadWrite);
    if (spare.ok()) spare_ = std::move(*spare);
  }
  return {};
}

void HistorySession::abort() {
  if (!is_open_) return;
  world_.breaker.withdraw(number_);
  transaction_.abort();
  log_.end(session_, false, history_now_ns());
  is_open_ = false;
}

void HistorySession::stop() {
  abort();
  spare_.abort();
}

Status HistorySession::finish() {
  if (chance(kAbortsPercent)) {
    abort();
    return {};
  }
  world_.breaker.withdraw(number_);
  log_.commit(session_);
  Status done;
  if (world_.breaker.rule() == BrokenRule::kForgottenCommit && chance(kForgottenPercent)) {
    transaction_.abort();
  } else {
    done = transaction_.commit();
  }
  if (!done.ok()) return judge(done);
  log_.end(session_, true, history_now_ns());
  is_open_ = false;
  return {};
}

Status HistorySession::read_group(std::uint32_t key) {
  const std::uint32_t key_limit = world_.memory.layout().next_key.load();
  const auto way = chance(kScansPercent) ? HistoryTables::Way::kScan : HistoryTables::Way::kRange;
  {
    const RuleBreaker::Statement statement(world_.breaker, transaction_, false, draw());
    if (Status s = world_.tables.read_group(transaction_, key, key_limit, way, registers_); !s.ok())
      return s;
  }
  for (const HistoryTables::Register& r : registers_)
    log_.read_register(session_, r.key, r.value, true);
  return {};
}

Status HistorySession::read(std::uint32_t key) {
  if (world_.tables.kind_of(key) == HistoryTables::Kind::kRegister) {
    if (chance(kGroupsPercent)) return read_group(key);
    std::uint32_t value = 0;
    {
      const RuleBreaker::Statement statement(world_.breaker, transaction_, false, draw());
      if (Status s = world_.tables.read_register(transaction_, key, value); !s.ok()) return s;
    }
    log_.read_register(session_, key, value, false);
    return {};
  }
  const auto way = chance(kPointsPercent) ? HistoryTables::Way::kPoint
                   : chance(50)           ? HistoryTables::Way::kRange
                                          : HistoryTables::Way::kScan;
  bool is_predicate = false;
  {
    const RuleBreaker::Statement statement(world_.breaker, transaction_, false, draw());
    if (Status s = world_.tables.read_list(transaction_, key, way, elements_, is_predicate);
        !s.ok())
      return s;
  }
  log_.read_list(session_, key, elements_, is_predicate);
  return {};
}

// Reads a register before writing it: so the order of its versions can be told.
Status HistorySession::write(std::uint32_t key) {
  const bool is_register = world_.tables.kind_of(key) == HistoryTables::Kind::kRegister;
  if (is_register || chance(30))
    if (Status s = read(key); !s.ok()) return s;
  const std::uint32_t value = world_.memory.take_value();
  const RuleBreaker::Statement statement(world_.breaker, transaction_, true, draw());
  if (is_register) {
    log_.write(session_, key, value);
    return world_.tables.write_register(transaction_, key, value);
  }
  log_.append(session_, key, value);
  return world_.tables.append(transaction_, key, value);
}

Status HistorySession::operate() {
  --steps_left_;
  const bool writes = !only_reads_ && chance(kWritesPercent);
  const std::uint32_t key = world_.memory.take_key(draw(), writes);
  if (!writes) return read(key);
  Status status = write(key);
  if (status.ok()) world_.breaker.offer(number_, transaction_);
  return status;
}

Status HistorySession::step() {
  if (!is_open_) return begin();
  if (steps_left_ == 0) return finish();
  return judge(operate());
}

Status read_everything(Database& database, const HistoryMemory& memory) {
  Result<HistoryTables> tables = HistoryTables::find(database, memory.plan());
  if (!tables.ok()) return std::move(tables).status();
  isolation::EventLog log = memory.log(memory.plan().users);
  const std::uint32_t key_limit = memory.layout().next_key.load();
  std::vector<std::uint32_t> elements;
  for (std::uint32_t first = 0; first < key_limit; first += kKeysOfLastReader) {
    log.begin(0, history_now_ns());
    Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
    if (!transaction.ok()) return std::move(transaction).status();
    for (std::uint32_t key = first; key < std::min(first + kKeysOfLastReader, key_limit); ++key) {
      Status status;
      if (tables->kind_of(key) == HistoryTables::Kind::kRegister) {
        std::uint32_t value = 0;
        status = tables->read_register(*transaction, key, value);
        log.read_register(0, key, value, false);
      } else {
        bool is_predicate = false;
        status = tables->read_list(*transaction, key, HistoryTables::Way::kRange, elements,
                                   is_predicate);
        log.read_list(0, key, elements, is_predicate);
      }
      if (!status.ok()) return status;
    }
    log.commit(0);
    if (Status s = transaction->commit(); !s.ok()) return s;
    log.end(0, true, history_now_ns());
  }
  return log.is_full() ? Status(StatusCode::kOutOfSpace, "the log of the history is full")
                       : Status();
}

}  // namespace flugs::sessions
