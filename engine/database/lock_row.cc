// Locking a row before it is written (decision 0021).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <thread>

#include "base/check.h"
#include "base/deadline.h"
#include "base/long_call.h"
#include "engine/database/database_core.h"
#include "flugs/transaction.h"
#include "mvcc/asymmetric_barrier.h"
#include "tables/catalog/schema_codec.h"

namespace flugs {

namespace engine {

namespace {

// Pause between two looks whether the row's writer has ended.
constexpr std::chrono::microseconds kRowPauseMin{20};
constexpr std::chrono::microseconds kRowPauseMax{1000};

std::string words_of(TransactionId id) {
  return id == TransactionId() ? "another transaction" : fmt::format("transaction {}", id.value());
}

}  // namespace

// Waits until no transaction is writing the row: ok if none has, kNotFound if a write was
// committed.
Status TransactionManager::wait_for_writer(TransactionContext& context, const Table& table,
                                           std::uint32_t row, RowLocks::Clock::time_point deadline,
                                           const std::stop_token& stop) {
  const std::uint32_t slot = context.slot->index();
  auto pause = kRowPauseMin;
  bool is_waiting = false;
  Status status;
  for (;;) {
    // The merge may have moved the entry. A transaction that writes from here on sees the lock.
    const mvcc::Visibility::Resolved found =
        context.visibility.resolve(table.rows().version(row).deleted);
    if (found.fate == mvcc::Visibility::Fate::kCommitted) status = Status(StatusCode::kNotFound);
    if (found.fate != mvcc::Visibility::Fate::kInFlight) break;
    if (RowLocks::Clock::now() >= deadline) {
      status = Status(StatusCode::kBusy,
                      words_of(in_slot(mvcc::slot_of(found.seen))) + " has written the row");
      break;
    }
    if (context.ending.is_to_end() || stop.stop_requested()) {
      status = Status(StatusCode::kCancelled);
      break;
    }
    if (!is_waiting) status = row_locks_->begin_waiting(slot, mvcc::slot_of(found.seen));
    if (!status.ok()) break;
    is_waiting = true;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kRowPauseMax);
  }
  if (is_waiting) row_locks_->end_waiting(slot);
  return status;
}

// A lock that was free stays locked if the row's writer is in the way: the caller releases it.
Status TransactionManager::lock_record(TransactionContext& context, const Table& table,
                                       std::uint32_t row, RowLocks::Clock::time_point deadline,
                                       const std::stop_token& stop) {
  if (mvcc::load_stamp(table.rows().version(row).created) == context.visibility.own_tag())
    return {};  // no other transaction sees it
  const Visit visiting(context);
  table.note_locked_rows();
  const LockName name = table.lock_name(row);
  bool is_new = false;
  Status status = row_locks_->lock(
      name, context.slot->index(), deadline,
      [&] { return context.ending.is_to_end() || stop.stop_requested(); }, is_new);
  if (status.code() == StatusCode::kBusy)
    status = Status(StatusCode::kBusy, words_of(holder_of(name)) + " has locked the row");
  if (status.ok()) {
    if (is_new) context.locks.add(name);
    mvcc::full_barrier();  // pairs with RowWriter::lock_row
    status = wait_for_writer(context, table, row, deadline, stop);
  }
  if (status.code() == StatusCode::kConflict) context.conflicts.add();
  return status;
}

}  // namespace engine

namespace {

Status named(const engine::Table& table, std::size_t key, const Status& why) {
  const bool has_key = key < table.keys().size() && table.keys().can_find(key);
  return Status(why.code(),
                has_key ? SchemaPart::key(table.name(), table.keys()[key]->name())
                        : SchemaPart::of(table.name()),
                why.message());
}

Status named(const engine::Table& table, std::size_t key, const Status& why, LockWait wait) {
  if (why.code() != StatusCode::kBusy) return named(table, key, why);
  return named(table, key,
               Status(why.code(), fmt::format("{}, and the wait of {} ms (LockWait::limit) is over",
                                              why.message(), wait.limit.count())));
}

Status check(LockWait wait) {
  if (wait.limit >= std::chrono::milliseconds(0)) return {};
  return Status(StatusCode::kInvalidArgument,
                fmt::format("a wait of {} ms, allowed are 0 ms and more", wait.limit.count()));
}

/// What a call of Transaction::lock locks: unless the call succeeds, it leaves nothing locked that
/// was not locked before.
class LocksOfCall final {
 public:
  explicit LocksOfCall(engine::HeldLocks& all) noexcept : all_(all), before_(all.size()) {}
  ~LocksOfCall() {
    if (!is_kept_) release();
  }
  LocksOfCall(const LocksOfCall&) = delete;
  LocksOfCall& operator=(const LocksOfCall&) = delete;

  void keep() noexcept { is_kept_ = true; }
  // If the call has ended the transaction, that has released them all.
  void release() noexcept {
    if (all_.size() > before_) all_.release_since(before_);
  }

 private:
  engine::HeldLocks& all_;
  const std::size_t before_;
  bool is_kept_ = false;
};

constexpr std::string_view kWritten = "another transaction has written the row since the snapshot";

}  // namespace

Result<Row> Transaction::lock(KeyId key, std::span<const Value> values, LockWait wait,
                              const std::stop_token& stop) {
  const engine::Call call(context_);
  const Result<engine::Table*> target = table_to_write(key);
  if (!target.ok()) return target.status();
  if (const Status s = check(wait); !s.ok()) return named(**target, key.index, s);
  const auto deadline = deadline_after(engine::RowLocks::Clock::now(), wait.limit);
  LocksOfCall locks(context_->locks);
  std::optional<engine::LockName> before;
  for (;;) {
    Result<Row> row = get(key, values);
    if (!row.ok()) return row;
    if (before && !(*before == (*target)->lock_name(row->id().value()))) locks.release();
    const Status locked = database_->transaction_manager().lock_record(
        *context_, **target, row->id().value(), deadline, stop);
    if (locked.ok()) {
      locks.keep();
      return row;
    }
    if (locked.code() == StatusCode::kCancelled)
      return context_->ending.is_to_end() ? unusable()
                                          : stopped_by_caller("table " + (*target)->name());
    if (locked.code() != StatusCode::kNotFound) return named(**target, key.index, locked, wait);
    // With read committed the newer version is most often the same record, and stays locked.
    before = (*target)->lock_name(row->id().value());
    if (context_->reads_anew()) continue;
    context_->note_conflict(ConflictReason::kRowWritten, key.table.value(), row->id().value(),
                            mvcc::kNoStamp);
    return named(**target, key.index, Status(StatusCode::kConflict, std::string(kWritten)));
  }
}

// Locks the record under the version that the caller has. If that is not the newest one, the
// primary key leads on.
Result<Row> Transaction::lock(const Row& row, LockWait wait) {
  const engine::Call call(context_);
  if (!is_usable()) return unusable();
  engine::Table* target = database_->table(row.table());
  if (target == nullptr) return engine::no_table();
  if (Status s = database_->transaction_manager().prepare_write(context_); !s.ok()) return s;
  if (const Status s = check(wait); !s.ok()) return named(*target, engine::kKeysMax, s);
  const auto begun = engine::RowLocks::Clock::now();
  Result<Row> seen = get(row.table(), row.id());
  if (!seen.ok() && !context_->reads_anew()) return seen;
  LocksOfCall locks(context_->locks);
  Status locked = seen.status();
  if (seen.ok())
    locked = database_->transaction_manager().lock_record(*context_, *target, row.id().value(),
                                                          deadline_after(begun, wait.limit), {});
  if (locked.ok()) {
    locks.keep();
    return seen;
  }
  if (locked.code() == StatusCode::kCancelled) return unusable();
  if (locked.code() != StatusCode::kNotFound) return named(*target, engine::kKeysMax, locked, wait);
  if (!context_->reads_anew() || !target->schema().has_primary_key) {
    context_->note_conflict(ConflictReason::kRowWritten, row.table().value(), row.id().value(),
                            mvcc::kNoStamp);
    return named(*target, engine::kKeysMax, Status(StatusCode::kConflict, std::string(kWritten)));
  }
  const std::span<const std::uint16_t> columns = target->keys()[0]->columns();
  std::array<Value, engine::kKeyColumnsMax> values;
  const std::span<Value> key(values.data(), columns.size());
  FLUGS_CHECK(target->reader().values_of(row.id().value(), columns, key));  // none is NULL
  Result<Row> newer = lock(KeyId{row.table(), 0}, engine::OwnedValues(key).view(), wait);
  if (newer.ok()) locks.keep();
  return newer;
}

}  // namespace flugs
