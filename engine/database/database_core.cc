#include "engine/database/database_core.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "engine/merge/table_merge.h"
#include "pmem/scm_reads.h"
#include "pmem/warm_list.h"
#include "tables/catalog/schema_codec.h"
#include "tables/table/table_audit.h"
#include "tables/table/table_hints.h"
#include "tables/table/table_statistics.h"
#include "tables/table/unlink_rows.h"

namespace flugs::engine {

namespace {

/// Of the machine.
std::uint64_t memory_bytes() noexcept {
  const auto pages = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PHYS_PAGES), 0L));
  return pages * static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
}

}  // namespace

DatabaseCore::DatabaseCore(std::unique_ptr<pmem::Pool> pool, const OpenOptions& options)
    : pool_(std::move(pool)), options_(options), tables_by_id_(kTableIdsMax) {
  slots_ = std::make_unique<mvcc::TransactionSlots>(*pool_, root().slot_array);
  reclaimer_ = std::make_unique<RowReclaimer>(*slots_);
  options_.clock = clock_in_use(options.clock, std::thread::hardware_concurrency());
  if (options_.clock == CommitClock::kProcessors) slots_->use_processor_clock();
}

CommitClock DatabaseCore::clock_in_use(CommitClock wanted, unsigned processors) {
  if (wanted != CommitClock::kAutomatic) return wanted;
  const bool pays = processors >= kProcessorsForClock;
  return pays && mvcc::Clock::check_processors().ok() ? CommitClock::kProcessors
                                                      : CommitClock::kCounter;
}

// Everything that a transaction does looks whether attention is wanted; what it finds then is true
// for ever. Other threads are not there any more, and what they held stays locked.
void DatabaseCore::give_up_in_child(void* core) noexcept {
  auto& self = *static_cast<DatabaseCore*>(core);
  self.is_forked_.store(true, std::memory_order_relaxed);
  for (const auto& context : self.contexts_) {
    context->ending.end_in_child();
  }
}

DatabaseCore::~DatabaseCore() {
  at_fork_.leave();
  closing_.store(true, std::memory_order_relaxed);
  warmer_.reset();
  sweeper_.reset();
  hint_keeper_.reset();
  merger_.reset();
  if (slots_ != nullptr) FLUGS_CHECK(slots_->taken() == 0);  // a transaction is still open
}

void DatabaseCore::start() {
  slots_->start(options_.slots_max);
  contexts_.resize(slots_->slot_count());
  for (auto& context : contexts_) {
    context = std::make_unique<TransactionContext>();
    context->slots = slots_.get();
    context->ddl_mutex = &ddl_mutex_;
    context->ending.connect(slots_->mirrors()[&context - contexts_.data()].attention,
                            slots_->asked_to_end());
    context->tables = &tables_by_id_;
  }
  watch_ = std::make_unique<TransactionWatch>(contexts_.size());
  row_locks_ = std::make_unique<RowLocks>(contexts_.size());
  for (std::uint32_t slot = 0; slot < contexts_.size(); ++slot)
    contexts_[slot]->locks.connect(*row_locks_, slot);
}

// --------------------------------------------------------------------------------- transactions

Result<TransactionContext*> DatabaseCore::take_context(AccessMode mode, Isolation isolation) {
  mvcc::Slot* slot = slots_->acquire();
  if (slot == nullptr)
    return Status(
        StatusCode::kTooManyTransactions,
        fmt::format("{} transactions are open, which is slots_max", slots_->slot_count()));
  TransactionContext& context = *contexts_[slot->index()];
  context.slot = slot;
  context.mode = mode;
  context.isolation = isolation;
  context.is_writing = false;
  context.ending.forget_former();
  const std::uint64_t snapshot = slots_->begin_snapshot(*slot);
  context.ending.begin(context.next_id(), snapshot);
  context.visibility = mvcc::Visibility(slots_->mirrors(), snapshot, mvcc::kNoStamp);
  return &context;
}

void DatabaseCore::begin_statement(TransactionContext& context) noexcept {
  context.visibility =
      mvcc::Visibility(slots_->mirrors(), slots_->now(), context.visibility.own_tag());
}

Result<Transaction> DatabaseCore::begin(AccessMode mode, Isolation isolation) {
  if (isolation > Isolation::kReadCommitted)
    return Status(StatusCode::kInvalidArgument, fmt::format("isolation is {}, allowed are 0 to 2",
                                                            static_cast<unsigned>(isolation)));
  pmem::begin_scm_task();
  Result<TransactionContext*> context = take_context(mode, isolation);
  if (!context.ok()) return std::move(context).status();
  Transaction transaction;
  transaction.database_ = this;
  transaction.context_ = *context;
  return transaction;
}

Status DatabaseCore::prepare_write(TransactionContext* context) {
  if (context == nullptr) return Status(StatusCode::kInvalidArgument, "the transaction has ended");
  if (context->is_writing) return {};
  if (context->mode == AccessMode::kReadOnly)
    return Status(StatusCode::kReadOnly, "the transaction was begun read-only");
  slots_->begin_writing(*context->slot);
  context->is_writing = true;
  context->visibility =
      mvcc::Visibility(slots_->mirrors(), context->visibility.snapshot(), context->slot->tag());
  return {};
}

// Locks go first: collecting lets go of the snapshot that holds back the rows whose ids are names
// of locks (Table::lock_name).
void DatabaseCore::clear(TransactionContext& context) noexcept {
  if (__builtin_expect(!context.locks.empty(), 0)) context.locks.release_since(0);
  if (context.is_writing && reclaimer_->reclaim(context)) merger_->retry_start();
  context.writes.clear();
  context.index_changes.clear();
  context.dead_rows.clear_dying();
  context.unflushed.clear();
  context.savepoints.clear();
  if (context.notes_reads()) context.reads.clear();
  context.asks_references = false;
  context.deletes_in_main = false;
}

Result<std::uint64_t> DatabaseCore::commit(TransactionContext& context) {
  if (context.writes.empty()) {
    abort(context);
    return std::uint64_t{0};
  }
  mvcc::Commit protocol(*slots_);
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

// Serializable: what it read must be at its commit time-stamp what it was in its snapshot, so that
// transactions take effect in the order of their time-stamps. Between the two others may have
// committed that change it; those that have no time-stamp yet will get a higher one.
bool DatabaseCore::reads_hold(TransactionContext& context, std::uint64_t at) const {
  if (__builtin_expect(!context.notes_reads() && !context.asks_references, 1)) return true;
  slots_->pass(at);
  const auto now = mvcc::Visibility::at_commit(slots_->mirrors(), at, context.visibility.own_tag());
  if (context.asks_references && !references_hold(context, now)) return false;
  return !context.notes_reads() || context.reads.holds(context.visibility, now);
}

// The same for foreign keys, at every level: each row that was written refers to one that is there
// at the commit time-stamp, and none refers to what was deleted. Of two transactions of which one
// deletes what the other refers to, the one with the higher time-stamp sees what the other did.
bool DatabaseCore::references_hold(TransactionContext& context, const mvcc::Visibility& now) {
  for (const mvcc::Write& write : context.writes) {
    const Result<bool> holds =
        context.table_of(write.table)->references().check(write, now, nullptr);
    if (holds.ok()) continue;
    const bool is_violated = holds.code() == StatusCode::kConstraintViolated;
    context.refusal = Status(is_violated ? StatusCode::kConflict : holds.code(),
                             std::string(holds.status().message()));
    return false;
  }
  return true;
}

// One that is to end may have been ended by another thread, or be about to.
void DatabaseCore::abort(TransactionContext& context) noexcept {
  context.ending.enter_last_call();
  if (context.ending.is_to_end()) {
    if (context.ending.is_parents()) return;
    end_now(context);
  } else {
    undo(context);
  }
  leave(context);
}

void DatabaseCore::leave(TransactionContext& context) noexcept {
  context.ending.leave();
  slots_->release(*context.slot);
}

void DatabaseCore::undo(TransactionContext& context) noexcept {
  if (context.is_writing) {
    for (auto change = context.index_changes.rbegin(); change != context.index_changes.rend();
         ++change)
      undo_index_change(change->table->data(), *change);
    for (const mvcc::Write& write : context.writes)
      if (write.deletes)
        if (Table* owner = known_table(TableId(write.table)); owner != nullptr)
          owner->rows().take_mark_back(write.row);
    mvcc::Commit(*slots_).undo(*context.slot, context.writes.all());
    for (const mvcc::Write& write : context.writes)
      if (!write.deletes)
        if (Table* owner = known_table(TableId(write.table)); owner != nullptr)
          context.dead_rows.give_back(*owner, write.row);
    if (!context.writes.empty()) context.aborts.add();
  }
  clear(context);
  context.is_writing = false;
}

// ---------------------------------------------------------------------------------------- tables

Table* DatabaseCore::adopt(std::unique_ptr<Table> table) {
  Table* raw = table.get();
  owned_tables_.push_back(std::move(table));
  __atomic_store_n(&tables_by_id_.begin(raw->id().value()), raw, __ATOMIC_RELEASE);
  set_hint_tail_max(raw->columns(), hint_tail_max());
  if (merger_ != nullptr) merger_->watch(*raw, options_.merge_policy);
  return raw;
}

Result<TableId> DatabaseCore::find_table(std::string_view name) const {
  const std::lock_guard guard(ddl_mutex_);
  for (const auto& table : owned_tables_)
    if (!table->is_dropped() && table->name() == name) return table->id();
  return Status(StatusCode::kNotFound, fmt::format("no table '{}'", name));
}

std::vector<TableId> DatabaseCore::tables() const {
  const std::lock_guard guard(ddl_mutex_);
  std::vector<TableId> ids;
  for (const auto& table : owned_tables_)
    if (!table->is_dropped()) ids.push_back(table->id());
  return ids;
}

Status DatabaseCore::skip_numbers(TableId id, std::int64_t last) {
  const std::lock_guard guard(ddl_mutex_);  // the table does not go away meanwhile
  Table* target = table(id);
  if (target == nullptr) return no_table();
  if (target->numbers() == nullptr)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: no column is auto-increment", target->name()));
  pmem::Persister persister(pool_->medium());
  return target->numbers()->skip(last, persister);
}

Result<MergeReport> DatabaseCore::merge(TableId id, const MergeOptions& options) {
  if (options.dead_percent < 1 || options.dead_percent > 100)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("dead_percent is {}, allowed are 1 to 100", options.dead_percent));
  if (options.waste_percent < 1 || options.waste_percent > 100)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("waste_percent is {}, allowed are 1 to 100", options.waste_percent));
  constexpr std::uint32_t kThreadsMax = 1024;
  if (options.threads > kThreadsMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("threads is {}, allowed are 0 to {}", options.threads, kThreadsMax));
  Table* merged = table(id);
  if (merged == nullptr) return no_table();
  const std::unique_lock running(merged->merge_mutex(), std::try_to_lock);
  if (!running.owns_lock())
    return Status(StatusCode::kBusy,
                  fmt::format("table {}: is being merged or dropped already", merged->name()));
  if (merged->is_dropped()) return no_table();
  TableMerge merge(*pool_, *slots_, *merged, ddl_mutex_, options);
  Status status = merge.run();
  merged->merge_record().note_merge(merge.report(), status);
  if (!status.ok()) return status;
  return merge.report();
}

bool DatabaseCore::keep_hints(pmem::Persister& persister) noexcept {
  constexpr std::uint32_t kHintsAtOnce = 1024;  // others want the mutex
  bool has_more = false;
  for (std::size_t i = 0;; ++i) {
    const std::lock_guard guard(ddl_mutex_);  // the table does not go away meanwhile
    if (i >= owned_tables_.size()) return has_more;
    Table& table = *owned_tables_[i];
    if (!table.is_gone()) has_more |= engine::keep_hints(table.columns(), persister, kHintsAtOnce);
  }
}

void DatabaseCore::enter_left_hints() {
  constexpr std::uint32_t kAtATime = 1024;  // others want the mutex
  constexpr std::chrono::microseconds kOthersTurn(20);
  pmem::Persister persister(pool_->medium());
  for (std::size_t i = 0;;) {
    {
      const std::lock_guard guard(ddl_mutex_);  // the table does not go away meanwhile
      if (i >= owned_tables_.size()) return;
      Table& table = *owned_tables_[i];
      if (table.is_gone() || !engine::enter_left_hints(table.columns(), persister, kAtATime)) ++i;
    }
    std::this_thread::sleep_for(kOthersTurn);
  }
}

void DatabaseCore::start_keeping_hints() {
  if (index_mode() != IndexMode::kHint || options_.hint_interval.count() == 0) return;
  hint_keeper_ = std::make_unique<HintKeeper>(*this, *pool_, options_.hint_interval);
  if (!hint_keeper_->is_running()) hint_keeper_.reset();
  const std::lock_guard guard(ddl_mutex_);
  for (const auto& table : owned_tables_) set_hint_tail_max(table->columns(), hint_tail_max());
}

Status DatabaseCore::finish_opening() {
  std::vector<Table*> found;
  {
    const std::lock_guard guard(ddl_mutex_);
    for (const auto& table : owned_tables_) found.push_back(table.get());
  }
  enter_left_hints();
  Status first;
  for (Table* table : found) {  // of one that is dropped meanwhile nothing is left
    Status built = table->index_build().build(DeferredIndexes::kAllIndexes);
    if (first.ok() && !table->is_dropped()) first = std::move(built);
    if (Status s = table->row_sweep().sweep_all(); first.ok()) first = std::move(s);
    if (Status s = check_hints(table->data(), table->index_build().mutex()); first.ok())
      first = std::move(s);
  }
  return first;
}

void DatabaseCore::start_sweeping() {
  std::vector<Table*> unswept;
  for (const auto& table : owned_tables_)
    if (table->row_sweep().unswept_rows() != 0 || has_much_to_check(table->data()) ||
        table->index_build().is_deferred())
      unswept.push_back(table.get());
  if (!options_.sweeps_in_background || unswept.empty()) return;
  for (Table* table : unswept)
    table->index_build().set_builds_later(true);  // its thread goes by that, too
  sweeper_ = std::make_unique<Sweeper>(unswept);
  if (sweeper_->is_running()) return;
  for (Table* table : unswept) table->index_build().set_builds_later(false);
}

void DatabaseCore::start_warming() {
  constexpr std::uint64_t kLittle = std::uint64_t{4} << 20;  // a thread costs more
  std::uint64_t bytes_max = options_.warm_bytes_max;
  // What is read in takes the place of what others have read.
  if (pool_->medium().kind() == pmem::MediumKind::kFile)
    bytes_max = std::min(bytes_max, memory_bytes() / 4);
  if (bytes_max == 0 || pool_->medium().kind() == pmem::MediumKind::kMemory ||
      pool_->allocator().space().used_bytes < kLittle)
    return;
  pmem::WarmList pages;
  for (const auto& table : owned_tables_) table->data().add_pages(pages);
  warmer_ = std::make_unique<Warmer>(*pool_, pages.hottest(bytes_max));
}

// With the thread: what it has fallen behind by when writers have to help it.
std::uint32_t DatabaseCore::hint_tail_max() const noexcept {
  constexpr std::uint32_t kBehindMax = 1u << 16;
  return hint_keeper_ != nullptr ? kBehindMax : columns::Dictionary::kHintTailMax;
}

Status DatabaseCore::set_merge_policy(TableId id, const MergePolicy& policy) {
  Table* target = table(id);
  if (target == nullptr) return no_table();
  return merger_->set_policy(*target, policy);
}

Result<MergeStatus> DatabaseCore::merge_status(TableId id) const {
  const Table* target = table(id);
  if (target == nullptr) return no_table();
  merger_->retry_start();
  return merge_status_of(target->data(), target->merge_record());
}

Statistics DatabaseCore::statistics() const {
  Statistics statistics;
  const pmem::Medium& medium = pool_->medium();
  statistics.medium = std::string(to_string(medium.kind()));
  statistics.flush = std::string(medium.flush_name());
  statistics.guarantee = std::string(guarantee_of(medium.kind()));
  const pmem::SpaceReport space = pool_->allocator().space();
  statistics.pool_reserved_bytes = space.reserved_bytes;
  statistics.pool_allocated_bytes = space.allocated_bytes;
  statistics.pool_used_bytes = space.used_bytes;
  const pmem::PersistCounters counters = medium.counters();
  statistics.lines_flushed = counters.lines_flushed;
  statistics.fences = counters.fences;
  statistics.bytes_written = counters.bytes_written;
  const pmem::ScmReads reads = medium.scm_reads();
  statistics.scm_lines_read = reads.lines;
  statistics.scm_lines_read_in_sequence = reads.sequential_lines;
  for (const auto& context : contexts_) {
    statistics.transactions_committed += context->commits.get();
    statistics.transactions_aborted += context->aborts.get();
    statistics.conflicts += context->conflicts.get();
  }
  statistics.transactions_open = slots_->taken();
  statistics.rows_locked = row_locks_->size();
  statistics.transactions_ended = ended_.load(std::memory_order_relaxed);
  for (const TransactionInfo& open : transactions()) {
    statistics.open_ms_max = std::max<std::uint64_t>(statistics.open_ms_max,
                                                     static_cast<std::uint64_t>(open.open.count()));
    if (!open.is_in_call)
      statistics.idle_ms_max = std::max<std::uint64_t>(
          statistics.idle_ms_max, static_cast<std::uint64_t>(open.idle.count()));
  }
  statistics.index_mode = index_mode();
  statistics.clock = options_.clock;
  if (warmer_ != nullptr) {
    statistics.warmed_bytes = warmer_->warmed_bytes();
    statistics.warm_bytes_left = warmer_->bytes_left();
    statistics.warm_ms = warmer_->ms();
  }
  const std::lock_guard guard(ddl_mutex_);
  for (const auto& table : owned_tables_) {
    if (table->is_dropped()) continue;
    statistics.dram_index_bytes += index_bytes_of(table->data());
    statistics.hint_index_bytes += hint_bytes_of(table->data());
    const MergeStatus merges = table->merge_record().status();
    statistics.merges += merges.merges;
    statistics.merge_failures += merges.failures;
    statistics.merge_seconds += merges.seconds;
    statistics.writes_refused += merges.writes_refused;
    statistics.rows_unswept += table->row_sweep().unswept_rows();
    const std::uint64_t left = table->index_build().still_deferred().steps();
    statistics.index_entries_left += left;
    statistics.index_entries_built += table->index_build().deferred_at_opening().steps() - left;
    statistics.index_build_ms += table->index_build().build_ms();
  }
  return statistics;
}

Result<TableStatistics> DatabaseCore::statistics(TableId id) const {
  const std::lock_guard guard(ddl_mutex_);  // editions of columns do not go meanwhile
  const Table* found = table(id);
  if (found == nullptr) return no_table();
  return statistics_of(found->data(), found->free_rows());
}

Status DatabaseCore::verify(const std::function<void(const Progress&)>& progress) {
  if (slots_->taken() != 0)
    return Status(StatusCode::kBusy, fmt::format("{} transactions are open", slots_->taken()));
  const std::vector<TableId> ids = tables();
  const mvcc::Visibility now(slots_->mirrors(), slots_->now(), mvcc::kNoStamp);
  for (const TableId id : ids) {  // of all: foreign keys look into other tables
    if (Table* checked = table(id); checked != nullptr) {
      if (Status s = checked->index_build().build(DeferredIndexes::kAllIndexes); !s.ok()) return s;
    }
  }
  enter_left_hints();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (progress) progress({"verify", i, ids.size()});
    if (Table* checked = table(ids[i]); checked != nullptr) {
      const std::lock_guard no_merge(checked->merge_mutex());
      if (Status s = check_hints(checked->data(), checked->index_build().mutex()); !s.ok())
        return s;
      if (Status s = TableAudit(checked->data()).run(now); !s.ok()) return s;
    }
  }
  // Across tables: with a snapshot, so that no merge gives back what is read.
  const Result<Transaction> reader = begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  for (const TableId id : ids)
    if (const Table* checked = table(id); checked != nullptr)
      if (Status s = checked->references().verify(now); !s.ok()) return s;
  if (progress) progress({"verify", ids.size(), ids.size()});
  return {};
}

}  // namespace flugs::engine
