#include "engine/database/transaction_manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "base/waiting.h"
#include "engine/background/merger.h"
#include "mvcc/commit.h"
#include "tables/data/unlink_rows.h"
#include "tables/table/table.h"

namespace flugs::engine {

void TransactionManager::start(std::uint32_t slots_max, Mutex& ddl_mutex,
                               const StableArray<Table*>& tables) {
  FLUGS_CHECK(contexts_.empty());
  slots_.start(slots_max);
  contexts_.resize(slots_.slot_count());
  watch_ = std::make_unique<TransactionWatch>(contexts_.size());
  row_locks_ = std::make_unique<RowLocks>(contexts_.size());
  for (std::uint32_t slot = 0; slot < contexts_.size(); ++slot) {
    contexts_[slot] = std::make_unique<TransactionContext>();
    TransactionContext& context = *contexts_[slot];
    context.slots = &slots_;
    context.ddl_mutex = &ddl_mutex;
    context.tables = &tables;
    context.ending.connect(slots_.mirrors()[slot].attention, slots_.asked_to_end());
    context.locks.connect(*row_locks_, slot);
  }
}

// reclaim_dead_rows takes idle slots, one after the other. A slot that it has is not one too few.
mvcc::Slot* TransactionManager::acquire_beside_reclaiming() noexcept {
  for (;;) {
    const std::uint64_t before = reclaims_.load();
    if (mvcc::Slot* const slot = slots_.acquire(); slot != nullptr) return slot;
    if (before % 2 == 0 && reclaims_.load() == before) return nullptr;
    std::this_thread::yield();
  }
}

Result<TransactionContext*> TransactionManager::begin(AccessMode mode, Isolation isolation) {
  mvcc::Slot* slot = slots_.acquire();
  if (__builtin_expect(slot == nullptr, 0)) slot = acquire_beside_reclaiming();
  if (slot == nullptr)
    return Status(StatusCode::kTooManyTransactions,
                  fmt::format("{} transactions are open, as many as OpenOptions::slots_max allows",
                              slots_.slot_count()));
  FLUGS_DCHECK(slot->index() < contexts_.size());
  TransactionContext& context = *contexts_[slot->index()];
  FLUGS_DCHECK(context.writes.empty() && context.index_changes.empty());
  FLUGS_DCHECK(context.savepoints.empty() && context.locks.empty());
  FLUGS_DCHECK(context.dead_rows.dying().empty());
  FLUGS_DCHECK(context.dead_rows.texts().written() == 0 && context.dead_rows.texts().left() == 0);
  context.slot = slot;
  context.mode = mode;
  context.isolation = isolation;
  context.is_writing = false;
  context.found.forget();
  context.ending.forget_former();
  const std::uint64_t snapshot = __builtin_expect(mode == AccessMode::kReadOnlyDurable, 0)
                                     ? slots_.begin_durable_snapshot(*slot)
                                     : slots_.begin_snapshot(*slot);
  context.ending.begin(context.next_id(), snapshot);
  context.visibility = mvcc::Visibility(slots_.mirrors(), snapshot, mvcc::kNoStamp);
  return &context;
}

void TransactionManager::begin_statement(TransactionContext& context) noexcept {
  FLUGS_DCHECK(context.reads_anew());
  context.found.forget();
  const std::uint64_t snapshot = context.mode == AccessMode::kReadOnlyDurable
                                     ? slots_.durable_now(*context.slot)
                                     : slots_.now();
  context.visibility = mvcc::Visibility(slots_.mirrors(), snapshot, context.visibility.own_tag());
}

Status TransactionManager::prepare_write(TransactionContext* context) {
  if (context == nullptr) return Status(StatusCode::kInvalidArgument, "the transaction has ended");
  if (__builtin_expect(!context->walks.empty(), 0)) context->walks.read_rest();
  if (context->is_writing) return {};
  if (context->mode != AccessMode::kReadWrite)
    return Status(StatusCode::kReadOnly, "the transaction was begun read-only");
  FLUGS_DCHECK(context->writes.empty());
  slots_.begin_writing(*context->slot);
  context->is_writing = true;
  context->visibility =
      mvcc::Visibility(slots_.mirrors(), context->visibility.snapshot(), context->slot->tag());
  return {};
}

// Locks go first: collecting garbage ends the snapshot that holds back the rows whose ids are names
// of locks (Table::lock_name).
void TransactionManager::clear(TransactionContext& context) noexcept {
  if (__builtin_expect(!context.locks.empty(), 0)) context.locks.release_since(0);
  if (context.is_writing && reclaimer_.reclaim(context)) merger_->retry_start();
  context.writes.clear();
  context.index_changes.clear();
  context.dead_rows.clear_dying();
  context.unflushed.clear();
  context.savepoints.clear();
  if (__builtin_expect(!context.walks.empty(), 0)) context.walks.end_all();
  if (context.notes_reads()) context.reads.clear();
  context.asks_references = false;
  context.deletes_in_main = false;
}

Result<std::uint64_t> TransactionManager::commit(TransactionContext& context,
                                                 const CommitOptions& options) {
  if (context.writes.empty()) {
    abort(context);
    return std::uint64_t{0};
  }
  FLUGS_DCHECK(context.is_writing);
  std::optional<std::chrono::microseconds> soon;
  if (__builtin_expect(options.durability != Durability::kOnReturn, 0))
    soon = options.durability == Durability::kSoon ? options.soon : pmem::kSometime;
  mvcc::Commit protocol(slots_, soon);
  Result<std::uint64_t> timestamp = protocol.run(
      *context.slot, context.writes.all(), context.writes.flushed_ahead(),
      [&](pmem::Persister& persister) { context.unflushed.flush(persister, "commit/1"); },
      [&] { context.unflushed.mark_durable(); },
      [&](std::uint64_t at) { return reads_hold(context, at); });
  if (!timestamp.ok()) {
    if (timestamp.code() == StatusCode::kConflict) context.conflicts.add();
    if (!context.refusal.ok()) timestamp = std::exchange(context.refusal, Status());
    abort(context);
    return timestamp;
  }
  FLUGS_DCHECK(*timestamp > context.visibility.snapshot());
  context.unflushed.keep_hints(context.slot->persister());
  if (context.deletes_in_main)
    for (const DeadRow& dead : context.dead_rows.dying())
      dead.table->rows().note_deleted(dead.row, *timestamp);
  context.dead_rows.commit(*timestamp);
  context.commits.add();
  clear(context);
  leave(context);
  return timestamp;
}

// Serializable: what the transaction read must be the same at its commit time-stamp as in its
// snapshot, so that transactions take effect in the order of their time-stamps. Between the two,
// others may have committed changes of it; transactions without a time-stamp yet will get a higher
// one.
bool TransactionManager::reads_hold(TransactionContext& context, std::uint64_t at) const {
  if (__builtin_expect(!context.notes_reads() && !context.asks_references, 1)) return true;
  slots_.pass(at);
  const auto now = mvcc::Visibility::at_commit(slots_.mirrors(), at, context.visibility.own_tag());
  if (context.asks_references && !references_hold(context, now)) return false;
  if (!context.notes_reads()) return true;
  const Table* const changed = context.reads.changed(context.visibility, now);
  if (changed == nullptr) return true;
  context.refusal =
      Status(StatusCode::kConflict, SchemaPart::of(changed->name()),
             "another transaction has changed rows that this serializable one has read");
  return false;
}

// The same for foreign keys, at every isolation level: at the commit time-stamp each written row
// must refer to an existing row, and no row may refer to a deleted one. If one of two transactions
// deletes the row that the other refers to, the one with the higher time-stamp sees the other's
// write.
bool TransactionManager::references_hold(TransactionContext& context, const mvcc::Visibility& now) {
  for (const mvcc::Write& write : context.writes) {
    FLUGS_DCHECK(context.table_of(write.table) != nullptr);
    const Result<bool> holds =
        context.table_of(write.table)->references().check(write, now, nullptr);
    if (holds.ok()) continue;
    const bool is_violated = holds.code() == StatusCode::kConstraintViolated;
    context.refusal =
        is_violated ? holds.status().with_code(StatusCode::kConflict) : holds.status();
    return false;
  }
  return true;
}

// Another thread may have ended a transaction that must end, or be about to.
void TransactionManager::abort(TransactionContext& context) noexcept {
  FLUGS_DCHECK(context.slot != nullptr);
  context.ending.enter_last_call();
  if (context.ending.is_to_end()) {
    if (context.ending.is_parents()) return;
    end_now(context);
  } else {
    undo(context);
  }
  leave(context);
}

void TransactionManager::leave(TransactionContext& context) noexcept {
  FLUGS_DCHECK(context.writes.empty() && context.index_changes.empty());
  FLUGS_DCHECK(context.locks.empty());
  context.ending.leave();
  slots_.release(*context.slot);
}

void TransactionManager::undo(TransactionContext& context) noexcept {
  if (context.is_writing) {
    for (auto change = context.index_changes.rbegin(); change != context.index_changes.rend();
         ++change)
      undo_index_change(change->table->data(), *change);
    for (const mvcc::Write& write : context.writes)
      if (write.deletes)
        if (Table* owner = context.table_of(write.table); owner != nullptr)
          owner->rows().take_mark_back(write.row);
    mvcc::Commit(slots_).undo(*context.slot, context.writes.all());
    for (const mvcc::Write& write : context.writes)
      if (!write.deletes)
        if (Table* owner = context.table_of(write.table); owner != nullptr)
          context.dead_rows.give_back(*owner, write.row);
    context.take_back_texts(0);
    if (!context.writes.empty()) context.aborts.add();
  }
  clear(context);
  context.is_writing = false;
}

// Reads since the savepoint stay noted, and rightly: what the transaction does from here on may
// depend on them, although it does not depend on the undone writes. Rows of its own that are noted
// and undone are seen neither at the snapshot nor at the commit.
Status TransactionManager::rollback_to(TransactionContext& context,
                                       const Savepoint& savepoint) noexcept {
  const Result<std::size_t> place = context.savepoints.find(savepoint);
  if (!place.ok()) return place.status();
  if (context.ending.is_visited())
    return Status(StatusCode::kInvalidArgument,
                  "rollback_to: a call of the transaction is visiting rows");
  const Visit visiting(context);
  context.walks.read_rest();
  context.walks.end_since(context.savepoints[*place].writes);
  context.undo_since(context.savepoints[*place]);
  context.locks.release_since(context.savepoints[*place].locks);
  context.savepoints.keep(*place + 1);
  FLUGS_DCHECK(context.writes.size() == context.savepoints.newest().writes);
  return {};
}

Status TransactionManager::release(TransactionContext& context,
                                   const Savepoint& savepoint) noexcept {
  const Result<std::size_t> place = context.savepoints.find(savepoint);
  if (!place.ok()) return place.status();
  context.savepoints.keep(*place);
  return {};
}

// Waits until no transaction is left whose snapshot is below `since`, but not for long.
bool TransactionManager::wait_for_snapshots(std::uint64_t since, std::chrono::milliseconds patience,
                                            const std::stop_token& stop) noexcept {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (slots_.oldest_snapshot() < since) {
    slots_.catch_up(since);
    if (wait_observer != nullptr) {  // patience is in real time
      wait_observer->on_wait();
      continue;
    }
    if (std::chrono::steady_clock::now() >= deadline || stop.stop_requested()) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return true;
}

Status TransactionManager::waited_too_long(std::string_view what,
                                           const std::stop_token& stop) const {
  if (stop.stop_requested()) return stopped_by_caller(what);
  const std::vector<TransactionInfo> all = open();
  const auto oldest =
      std::max_element(all.begin(), all.end(), [](const auto& left, const auto& right) {
        return left.snapshots_behind < right.snapshots_behind;
      });
  if (oldest == all.end())
    return Status(StatusCode::kBusy,
                  fmt::format("{}: a transaction was open for too long; try again", what));
  return Status(StatusCode::kBusy,
                fmt::format("{}: transaction {} began before the call and is still open: open for "
                            "{} ms, without a call for {} ms",
                            what, oldest->id.value(), oldest->open.count(), oldest->idle.count()));
}

void TransactionManager::report(Statistics& statistics) const {
  for (const auto& context : contexts_) {
    statistics.transactions_committed += context->commits.get();
    statistics.transactions_aborted += context->aborts.get();
    statistics.conflicts += context->conflicts.get();
  }
  statistics.transactions_open = open_count();
  statistics.rows_locked = row_locks_->size();
  statistics.transactions_ended = ended_.load(std::memory_order_relaxed);
  for (const TransactionInfo& open : open()) {
    statistics.open_ms_max = std::max<std::uint64_t>(statistics.open_ms_max,
                                                     static_cast<std::uint64_t>(open.open.count()));
    if (!open.is_in_call)
      statistics.idle_ms_max = std::max<std::uint64_t>(
          statistics.idle_ms_max, static_cast<std::uint64_t>(open.idle.count()));
  }
}

}  // namespace flugs::engine
