#include "engine/database/database_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/long_call.h"
#include "base/processors.h"
#include "engine/database/durable_tokens.h"
#include "engine/merge/table_merge.h"
#include "pmem/medium/scm_reads.h"
#include "tables/catalog/schema_codec.h"
#include "tables/data/table_audit.h"
#include "tables/data/table_hints.h"
#include "tables/data/table_statistics.h"
#include "tables/data/unlink_rows.h"
#include "tables/table/space_estimate.h"

namespace flugs::engine {

namespace {

std::uint64_t next_opening() noexcept {
  static std::atomic<std::uint64_t> openings{0};
  return openings.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

DatabaseCore::DatabaseCore(std::unique_ptr<pmem::Pool> pool, const OpenOptions& options)
    : pool_(std::move(pool)),
      options_(options),
      transactions_(*pool_, root().slot_array),
      catalog_(*pool_, transactions_, threads_, options_.segment_bytes),
      schema_changes_(catalog_, transactions_, threads_),
      key_changes_(catalog_, transactions_),
      constraint_changes_(catalog_, transactions_, key_changes_),
      space_advice_(catalog_, transactions_),
      opening_(next_opening()),
      threads_(*pool_, options_) {
  options_.tuning.clock = clock_in_use(options.tuning.clock, processors());
  if (options_.tuning.clock == CommitClock::kProcessors) slots().use_processor_clock();
}

CommitClock DatabaseCore::clock_in_use(CommitClock wanted, unsigned processors) {
  if (wanted != CommitClock::kAutomatic) return wanted;
  const bool pays = processors >= kProcessorsForClock;
  return pays && mvcc::Clock::check_processors().ok() ? CommitClock::kProcessors
                                                      : CommitClock::kCounter;
}

void DatabaseCore::give_up_in_child(void* core) noexcept {
  auto& self = *static_cast<DatabaseCore*>(core);
  self.is_forked_.store(true, std::memory_order_relaxed);
  self.is_left_.store(false, std::memory_order_relaxed);  // the pool is the parent's
  self.transactions_.end_in_child();
}

DatabaseCore::~DatabaseCore() {
  at_fork_.leave();
  catalog_.close();
  threads_.stop();
  FLUGS_CHECK(slots().taken() == 0);  // Database::~Database has looked
}

void DatabaseCore::leave_to_transactions(std::unique_ptr<DatabaseCore> core) noexcept {
  FLUGS_CHECK(core->has_open_transactions());
  FLUGS_CHECK(!core->is_forked());  // there the pool is the parent's
  core->is_left_.store(true, std::memory_order_relaxed);
  [[maybe_unused]] const DatabaseCore* left = core.release();
}

// The mutex also lets the transactions end one after the other, so that just one of them finds
// itself the last.
void DatabaseCore::end_left_open(FunctionRef<void()> end) noexcept {
  FLUGS_CHECK(is_left());
  std::unique_lock lock(left_mutex_);
  end();
  const bool is_last = !has_open_transactions();
  lock.unlock();
  if (is_last) delete this;
}

Status DatabaseCore::no_open_transactions(std::string_view what) const {
  if (!has_open_transactions()) return {};
  const std::vector<TransactionInfo> open = transactions();
  // A transaction that another thread is beginning or ending has a slot, and is not listed.
  if (open.empty())
    return Status(StatusCode::kBusy,
                  fmt::format("{} needs that no transaction is open; a transaction is beginning or "
                              "ending in another thread: wait for that thread first",
                              what));
  const auto oldest = std::max_element(
      open.begin(), open.end(),
      [](const TransactionInfo& a, const TransactionInfo& b) { return a.open < b.open; });
  return Status(
      StatusCode::kBusy,
      fmt::format("{} needs that no transaction is open; {} open, the oldest is {} ({}), for at "
                  "least {} ms: commit, abort or destroy it first",
                  what, open.size() == 1 ? "1 is" : fmt::format("{} are", open.size()),
                  oldest->id.value(),
                  oldest->mode == AccessMode::kReadWrite ? "read-write" : "read-only",
                  oldest->open.count()));
}

Result<Transaction> DatabaseCore::begin(AccessMode mode, Isolation isolation) {
  // The messages below name these numbers.
  static_assert(static_cast<unsigned>(AccessMode::kReadOnlyDurable) == 2);
  static_assert(static_cast<unsigned>(Isolation::kReadCommitted) == 2);
  if (mode > AccessMode::kReadOnlyDurable)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("mode is {}, allowed are 0 to 2", static_cast<unsigned>(mode)));
  if (isolation > Isolation::kReadCommitted)
    return Status(StatusCode::kInvalidArgument, fmt::format("isolation is {}, allowed are 0 to 2",
                                                            static_cast<unsigned>(isolation)));
  pmem::begin_scm_task();
  Result<TransactionContext*> context = transactions_.begin(mode, isolation);
  if (!context.ok()) return std::move(context).status();
  Transaction transaction;
  transaction.database_ = this;
  transaction.context_ = *context;
  return transaction;
}

// ---------------------------------------------------------------------------------------- tables

const TableData* DatabaseCore::table_data(TableId id) const noexcept {
  const Table* const found = table(id);
  return found == nullptr ? nullptr : &found->data();
}

Status DatabaseCore::skip_numbers(TableId id, std::int64_t last) {
  const std::lock_guard guard(catalog_.ddl_mutex());  // the table does not go away meanwhile
  Table* target = table(id);
  if (target == nullptr) return no_table();
  if (target->numbers() == nullptr)
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(target->name()),
                  "no column is auto-increment");
  pmem::Persister persister(pool_->medium());
  return target->numbers()->skip(last, persister);
}

Result<MergeReport> DatabaseCore::merge(TableId id, const MergeOptions& options) {
  if (options.dead_percent < 1 || options.dead_percent > 100)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("MergeOptions::dead_percent is {}, allowed are 1 to 100",
                              options.dead_percent));
  if (options.waste_percent < 1 || options.waste_percent > 100)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("MergeOptions::waste_percent is {}, allowed are 1 to 100",
                              options.waste_percent));
  if (options.threads > Crew::kWorkersMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("MergeOptions::threads is {}, allowed are 0 to {}", options.threads,
                              Crew::kWorkersMax));
  Table* merged = table(id);
  if (merged == nullptr) return no_table();
  std::unique_lock running(merged->merge_mutex(), std::try_to_lock);
  while (!running.owns_lock() && merged->merge_record().is_by_policy()) {
    if (options.stop.stop_requested()) return stopped_by_caller("table " + merged->name());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    running.try_lock();
  }
  if (!running.owns_lock() && !running.try_lock())
    return Status(StatusCode::kBusy, SchemaPart::of(merged->name()),
                  "it is already being merged or dropped");
  if (merged->is_dropped()) return no_table();
  transactions_.reclaim_dead_rows();
  TableMerge merge(*pool_, slots(), *merged, catalog_.ddl_mutex(), options);
  Status status = merge.run();
  const bool is_failure = !status.ok() && status.code() != StatusCode::kCancelled;
  merged->merge_record().note_merge(merge.report(), is_failure ? status : Status());
  pool_->allocator().give_back(pmem::Slack::kSome);  // also what became free before
  if (status.ok()) status = pool_->medium().wait_durable();
  if (!status.ok()) return status;
  return merge.report();
}

Status DatabaseCore::finish_opening() {
  std::vector<Table*> found;
  {
    const std::lock_guard guard(catalog_.ddl_mutex());
    for (const auto& table : catalog_.all()) found.push_back(table.get());
  }
  catalog_.enter_left_hints();
  Status first;
  for (Table* table : found) {  // nothing is left of a table that is dropped meanwhile
    Status built = table->index_build().build(DeferredIndexes::kAllIndexes);
    if (first.ok() && !table->is_dropped()) first = std::move(built);
    if (Status s = table->row_sweep().sweep_all(); first.ok()) first = std::move(s);
    if (Status s = check_hints(table->data(), table->index_build().mutex()); first.ok())
      first = std::move(s);
  }
  return first;
}

Status DatabaseCore::set_merge_policy(TableId id, const MergePolicy& policy) {
  Table* target = table(id);
  if (target == nullptr) return no_table();
  return threads_.merger().set_policy(*target, policy);
}

Result<MergeStatus> DatabaseCore::merge_status(TableId id) const {
  const Table* target = table(id);
  if (target == nullptr) return no_table();
  threads_.merger().retry_start();
  return merge_status_of(target->data(), target->merge_record());
}

DurableTokens DatabaseCore::durable_tokens() const noexcept { return {*pool_, opening_}; }

Statistics DatabaseCore::statistics() const {
  Statistics statistics;
  const pmem::Medium& medium = pool_->medium();
  statistics.medium = std::string(medium.facts().name);
  statistics.flush = std::string(medium.flush_name());
  const std::optional<pmem::ShutdownCount>& shutdowns = medium.nvdimms().shutdowns;
  statistics.dirty_shutdowns = shutdowns ? std::to_string(shutdowns->count) : "not known";
  statistics.guarantee = std::string(medium.facts().guarantee);
  statistics.guarantee_soon = std::string(medium.guarantee_soon());
  const pmem::SpaceReport space = pool_->allocator().space();
  statistics.pool_reserved_bytes = space.reserved_bytes;
  statistics.pool_allocated_bytes = space.allocated_bytes;
  statistics.pool_used_bytes = space.used_bytes;
  statistics.pool_free_bytes = space.free_bytes();
  statistics.pool_overhead_bytes = space.overhead_bytes;
  statistics.pool_hole_bytes = space.hole_bytes;
  statistics.pool_reserve_bytes = space.reserve_bytes;
  statistics.pool_left_bytes = space.left_bytes();
  const pmem::PersistCounters counters = medium.counters();
  statistics.lines_flushed = counters.lines_flushed;
  statistics.fences = counters.fences;
  statistics.bytes_written = counters.bytes_written;
  if (const pmem::LineJournal* journal = medium.journal(); journal != nullptr) {
    const pmem::JournalCounters work = journal->counters();
    statistics.journal_record_bytes = work.record_bytes;
    statistics.journal_written_bytes = work.written_bytes;
    statistics.journal_writes = work.writes;
    statistics.direct_writes = work.direct_writes;
    statistics.direct_written_bytes = work.direct_bytes;
    statistics.commits_soon = work.soon;
    statistics.commits_soon_late = work.late;
  }
  const pmem::ScmReads reads = medium.scm_reads();
  statistics.scm_lines_read = reads.lines;
  statistics.scm_lines_read_in_sequence = reads.sequential_lines;
  transactions_.report(statistics);
  statistics.index_place = index_place();
  statistics.clock = options_.tuning.clock;
  threads_.report(statistics);
  const std::lock_guard guard(catalog_.ddl_mutex());
  for (const auto& table : catalog_.all()) {
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
  const std::lock_guard guard(catalog_.ddl_mutex());  // editions of columns do not go meanwhile
  const Table* found = table(id);
  if (found == nullptr) return no_table();
  TableStatistics statistics = statistics_of(found->data(), found->free_rows());
  statistics.catalog_bytes = found->table_columns().description_bytes();
  statistics.pool_bytes = statistics.delta_bytes + statistics.main_bytes +
                          statistics.dictionary_bytes + statistics.hint_index_bytes +
                          statistics.index_run_bytes + statistics.catalog_bytes +
                          statistics.replaced_bytes;
  return statistics;
}

Result<MergeEstimate> DatabaseCore::estimate_merge(TableId id) {
  const Table* found = table(id);
  if (found == nullptr) return no_table();
  SpaceEstimate estimate(found->data(), slots(), 1);
  estimate.count_rows();
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (found->is_dropped()) return no_table();
  estimate.count_columns();
  return estimate.result();
}

Status DatabaseCore::verify(const CallOptions& options) {
  if (Status s = no_open_transactions("check"); !s.ok()) return s;
  const std::vector<TableId> ids = tables();
  LongCall call(options, "check");
  const auto stopped = [&] { return stopped_by_caller(pool_->path()); };
  std::uint64_t all = 0;
  const mvcc::Visibility now(slots().mirrors(), slots().now(), mvcc::kNoStamp);
  for (const TableId id : ids) {  // of all: foreign keys refer to other tables
    if (call.is_asked_to_stop()) return stopped();
    if (Table* checked = table(id); checked != nullptr) {
      if (Status s = checked->index_build().build(DeferredIndexes::kAllIndexes); !s.ok()) return s;
      const bool refers = !checked->references().foreign_keys().empty();
      all += std::uint64_t{refers ? 2U : 1U} * checked->rows().rows_end();
    }
  }
  catalog_.enter_left_hints();
  std::uint64_t before = 0;
  const auto goes_on = [&](std::uint32_t rows) { return call.goes_on(before + rows, all); };
  if (!goes_on(0)) return stopped();
  for (const TableId id : ids) {
    Table* checked = table(id);
    if (checked == nullptr) continue;
    const std::lock_guard no_merge(checked->merge_mutex());
    // The thread that merges by policy takes dead rows of all tables out of the indexes.
    const TransactionManager::NoReclaiming no_reclaiming(transactions_);
    if (Status s = check_hints(checked->data(), checked->index_build().mutex()); !s.ok()) return s;
    if (Status s = TableAudit(checked->data()).run(now, goes_on); !s.ok()) return s;
    before += checked->rows().rows_end();
  }
  // Foreign keys cross tables: hold a snapshot, so that no merge frees what is read.
  const Result<Transaction> reader = begin(AccessMode::kReadOnly);
  if (!reader.ok()) return reader.status();
  for (const TableId id : ids) {
    const Table* checked = table(id);
    if (checked == nullptr || checked->references().foreign_keys().empty()) continue;
    if (!goes_on(0)) return stopped();
    if (Status s = checked->references().verify(now); !s.ok()) return s;
    before += checked->rows().rows_end();
  }
  call.tell(all, all);
  return {};
}

}  // namespace flugs::engine
