#include "verify/crash/scripts/threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "verify/crash/rig/probe.h"
#include "verify/crash/rig/scheduler.h"

namespace flugs::crash {

namespace {

/// A transaction's view of the steps of others.
struct Reading {
  std::uint64_t snapshot = 0;
  DatabaseState base;               // settled when it began
  std::vector<Pending> candidates;  // in flight then
  std::size_t ended_before = 0;     // of ThreadRun::ended_
  DatabaseState state;              // as of the snapshot
  std::uint32_t taken = 0;          // of the candidates, by their place
  std::uint32_t effective = 0;      // candidates whose effect the transaction can see
};

bool meet(const Step& step, const RowWrite& write) {
  if (step.dropped == write.table || step.creates(write.table)) return true;
  return std::any_of(step.writes.begin(), step.writes.end(), [&](const RowWrite& other) {
    return other.table == write.table && other.id == write.id;
  });
}

class ThreadRun {
 public:
  ThreadRun(CrashRig& rig, const std::vector<ThreadScript>& scripts)
      : rig_(rig),
        scripts_(scripts),
        scheduler_(rig.options().schedule, *rig.observer(), [&rig] { rig.unmute(); }) {}

  void run() {
    if (rig_.options().schedule.empty()) rig_.unmute();
    pmem::Medium& medium = rig_.core().pool().medium();
    medium.set_observer(&scheduler_);
    std::vector<std::function<void()>> threads;
    threads.reserve(scripts_.size());
    for (std::uint32_t i = 0; i < scripts_.size(); ++i)
      threads.emplace_back([this, i] { run_script(i); });
    scheduler_.run(threads);
    medium.set_observer(rig_.observer());
    rig_.set_turns(scheduler_.turns());
    rig_.unmute();
    if (rig_.is_done()) return;
    if (Status s = check_readings(); !s.ok()) return rig_.fail(std::move(s));
    if (Status s = audit(); !s.ok())
      rig_.fail(Status(s.code(), "at the end: " + std::string(s.message())));
  }

 private:
  void run_script(std::uint32_t number) {
    const mvcc::OtherThread self(number + 2);
    bool is_first = true;
    for (const ThreadStep& step : scripts_[number]) {
      scheduler_.point();
      if (rig_.is_done()) return;
      if (step.keeps) {
        rig_.keep_hints();
        continue;
      }
      const bool changes_tables = !step.step.created.empty() || !step.step.dropped.empty();
      Status status = changes_tables ? change_tables(step.step)
                                     : transact(step, std::exchange(is_first, false));
      if (!status.ok())
        return rig_.fail(
            Status(status.code(), fmt::format("thread {}: {}", number, status.message())));
    }
  }

  std::uint64_t announce(const Step& step) {
    const std::uint64_t number = rig_.announce(step);
    running_.emplace(number, step);
    return number;
  }

  void end(std::uint64_t number) { ended_.push_back(running_.extract(number).mapped()); }

  Status change_tables(const Step& step) {
    const std::uint64_t number = announce(step);
    rig_.may_take_effect(number);
    std::uint64_t unused = 0;
    Status status = run_step(rig_.core(), step, unused);
    if (!status.ok()) {
      rig_.withdraw(number);
      end(number);
      return status;
    }
    tell(number, step, 0);
    return {};
  }

  /// The step's thread knows that it has taken effect, and says so.
  void tell(std::uint64_t number, const Step& step, std::uint64_t timestamp) {
    scheduler_.point();
    if (!step.dropped.empty()) settle_writers(step.dropped);
    rig_.settle(number);
    rig_.set_timestamp(std::max(rig_.expectation().timestamp, timestamp));
    end(number);
    const Scheduler::Undisturbed undisturbed;
    rig_.acknowledge();
  }

  /// Dropping a table has waited for the ends of its writers.
  void settle_writers(const std::string& table) {
    const std::vector<Pending> pending = rig_.expectation().pending;
    for (const Pending& one : pending)
      if (one.is_committing && std::any_of(one.step.writes.begin(), one.step.writes.end(),
                                           [&](const auto& w) { return w.table == table; }))
        rig_.settle(one.number);
  }

  Status transact(const ThreadStep& step, bool is_first) {
    Result<Transaction> begun = rig_.core().begin(AccessMode::kReadWrite);
    if (!begun.ok()) return std::move(begun).status();
    Transaction transaction = std::move(*begun);
    const std::size_t reading = begin_reading(transaction);
    if (Status s = read_first(reading, transaction); !s.ok()) return s;
    // Makes the first transactions of all threads overlap, whatever the schedule.
    if (is_first) scheduler_.pass();
    scheduler_.point();
    const std::uint64_t number = announce(step.step);
    DatabaseState own = readings_[reading].state;
    bool has_failed = false;
    Status status = write(step.step, reading, transaction, own, has_failed);
    if (status.ok() && !has_failed) status = read_again(transaction, own);
    if (!status.ok() || has_failed || step.aborts || step.step.writes.empty()) {
      transaction.abort();
      rig_.withdraw(number);
      end(number);
      return status;
    }
    rig_.may_take_effect(number);
    const std::uint64_t before = rig_.expectation().timestamp;
    if (Status s = transaction.commit(); !s.ok()) return s;
    const std::uint64_t given = transaction.commit_timestamp();
    if (given <= before || !timestamps_.emplace(number, given).second)
      return wrong(fmt::format("time-stamp {} was given out after {}", given, before));
    tell(number, step.step, given);
    return {};
  }

  /// No switch point comes between the snapshot and this.
  std::size_t begin_reading(const Transaction& transaction) {
    Reading reading;
    reading.snapshot = transaction.snapshot();
    reading.base = rig_.state();
    for (const Pending& pending : rig_.expectation().pending)
      if (pending.is_committing) reading.candidates.push_back(pending);
    reading.ended_before = ended_.size();
    readings_.push_back(std::move(reading));
    return readings_.size() - 1;
  }

  Status read_first(std::size_t index, const Transaction& transaction) {
    Result<DatabaseState> found = read_state(rig_.core(), transaction);
    if (!found.ok()) return std::move(found).status();
    Reading& reading = readings_[index];
    const std::size_t count = reading.candidates.size();
    std::string unlike;
    for (std::size_t size = 0; size <= count; ++size) {
      for (std::uint32_t taken = 0; taken < 1U << count; ++taken) {
        if (static_cast<std::size_t>(__builtin_popcount(taken)) != size) continue;
        DatabaseState expected = reading.base;
        if (!apply(reading, taken, *found, expected)) continue;
        const std::string words = difference_now(expected, *found);
        if (words.empty()) {
          reading.taken = taken;
          reading.state = std::move(expected);
          note_seen(reading, *found);
          return {};
        }
        unlike += (unlike.empty() ? "" : "; nor with what was in flight: ") + words;
      }
    }
    return wrong(fmt::format("a transaction with snapshot {} sees: {}", reading.snapshot, unlike));
  }

  /// Cannot tell what happened to a table that is gone when the transaction looks.
  static bool apply(Reading& reading, std::uint32_t taken, const DatabaseState& found,
                    DatabaseState& state) {
    const auto known = [&](DatabaseState all) {
      std::erase_if(all, [&](const auto& table) { return !found.contains(table.first); });
      return all;
    };
    for (std::size_t i = 0; i < reading.candidates.size(); ++i) {
      if ((taken >> i & 1) == 0) continue;
      const DatabaseState before = known(state);
      if (!model_step(reading.candidates[i].step, state)) return false;
      if (!difference(before, known(state)).empty()) reading.effective |= 1U << i;
    }
    return true;
  }

  /// The set of tables does not depend on a snapshot: a table that came meanwhile is there, and
  /// empty; one that is being dropped is not.
  std::string difference_now(DatabaseState expected, DatabaseState found) const {
    std::erase_if(found, [&](const auto& table) {
      return !expected.contains(table.first) && table.second.empty();
    });
    std::erase_if(expected, [&](const auto& table) {
      return !found.contains(table.first) && is_going(table.first);
    });
    return difference(expected, found);
  }
  bool is_going(const std::string& table) const {
    const auto& pending = rig_.expectation().pending;
    return !rig_.state().contains(table) ||
           std::any_of(pending.begin(), pending.end(),
                       [&](const Pending& one) { return one.step.dropped == table; });
  }

  void note_seen(const Reading& reading, const DatabaseState& found) {
    for (std::size_t i = 0; i < reading.candidates.size(); ++i)
      if ((reading.taken >> i & 1) != 0) rig_.settle(reading.candidates[i].number);
    const std::vector<Pending> pending = rig_.expectation().pending;
    for (const Pending& one : pending)
      if (std::any_of(one.step.created.begin(), one.step.created.end(),
                      [&](const TableSchema& schema) { return found.contains(schema.name); }))
        rig_.settle(one.number);
  }

  /// Sets `has_failed` when a write failed that may fail.
  Status write(const Step& step, std::size_t reading, Transaction& transaction, DatabaseState& own,
               bool& has_failed) {
    for (const RowWrite& one : step.writes) {
      note_table(one.table, own);
      ModelSteps next(own);
      const bool is_admitted = next.run(Writes{one});
      RowIds row_ids(rig_.core());  // others write between
      Status status = write_all(rig_.core(), transaction, {one}, row_ids);
      if (status.ok() && !is_admitted)
        return wrong(
            fmt::format("table {}: row {} was written, but must not be", one.table, one.id));
      if (!status.ok()) {
        const bool is_refusal = status.code() == StatusCode::kConflict ||
                                status.code() == StatusCode::kNotFound ||
                                status.code() == StatusCode::kAlreadyExists;
        if (!is_refusal || (is_admitted && !is_excused(one, reading))) return status;
        has_failed = true;
        return {};
      }
      next.keep();
      scheduler_.point();
    }
    return {};
  }

  /// A table may be created while a transaction runs; the transaction then finds it empty.
  void note_table(const std::string& name, DatabaseState& own) {
    const Result<TableId> found = rig_.core().find_table(name);
    const engine::Table* table = found.ok() ? rig_.core().table(*found) : nullptr;
    if (table == nullptr || own.contains(name)) return;
    Step creation;
    creation.created = {table->schema()};
    model_step(creation, own);
    const std::vector<Pending> pending = rig_.expectation().pending;
    for (const Pending& one : pending)
      if (one.step.creates(name)) rig_.settle(one.number);
  }

  /// Whether another transaction wrote the row since the reading began.
  bool is_excused(const RowWrite& write, std::size_t reading) const {
    const auto meets = [&](const Step& step) { return meet(step, write); };
    // Our own step is among those that run.
    if (std::count_if(running_.begin(), running_.end(),
                      [&](const auto& one) { return meets(one.second); }) > 1)
      return true;
    const auto since = static_cast<std::ptrdiff_t>(readings_[reading].ended_before);
    return std::any_of(ended_.begin() + since, ended_.end(), meets) || is_going(write.table);
  }

  Status read_again(const Transaction& transaction, const DatabaseState& own) {
    Result<DatabaseState> found = read_state(rig_.core(), transaction);
    if (!found.ok()) return std::move(found).status();
    const std::string unlike = difference_now(own, *found);
    return unlike.empty() ? Status() : wrong("before its end a transaction sees: " + unlike);
  }

  /// Called when all time-stamps are known: each reading saw exactly those at or below its
  /// snapshot.
  Status check_readings() const {
    for (const Reading& reading : readings_) {
      for (std::size_t i = 0; i < reading.candidates.size(); ++i) {
        const auto known = timestamps_.find(reading.candidates[i].number);
        if (known == timestamps_.end() || (reading.effective >> i & 1) == 0) continue;
        const bool is_seen = (reading.taken >> i & 1) != 0;
        if (is_seen != (known->second <= reading.snapshot))
          return wrong(fmt::format("a transaction with snapshot {} {} one with time-stamp {}",
                                   reading.snapshot, is_seen ? "saw" : "missed", known->second));
      }
    }
    return {};
  }

  Status audit() {
    {
      Result<Transaction> reader = rig_.core().begin(AccessMode::kReadOnly);
      if (!reader.ok()) return std::move(reader).status();
      Result<DatabaseState> found = read_state(rig_.core(), *reader);
      if (!found.ok()) return std::move(found).status();
      if (const std::string unlike = difference(rig_.state(), *found); !unlike.empty())
        return wrong(unlike);
    }
    if (Status s = rig_.core().verify({}); !s.ok()) return s;
    return check_space(rig_.core());
  }

  CrashRig& rig_;
  const std::vector<ThreadScript>& scripts_;
  Scheduler scheduler_;
  // The thread that has the turn owns all members below.
  std::vector<Reading> readings_;
  std::map<std::uint64_t, Step> running_;  // by number, until their threads have told how they end
  std::vector<Step> ended_;
  std::map<std::uint64_t, std::uint64_t> timestamps_;  // by number of the step
};

}  // namespace

ThreadStep commits(Writes writes) { return {.step = {.writes = std::move(writes)}}; }
ThreadStep aborts(Writes writes) { return {.step = {.writes = std::move(writes)}, .aborts = true}; }
ThreadStep reads() { return {}; }
ThreadStep creates(const TableSchema& schema) { return {.step = {.created = {schema}}}; }
ThreadStep drops(std::string table) { return {.step = {.dropped = std::move(table)}}; }
ThreadStep keeps() { return {.step = {}, .keeps = true}; }

void run_threads(CrashRig& rig, const std::vector<ThreadScript>& scripts) {
  if (!rig.is_done()) ThreadRun(rig, scripts).run();
}

}  // namespace flugs::crash
