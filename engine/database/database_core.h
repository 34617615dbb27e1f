#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crew.h"
#include "base/fork.h"
#include "base/mutex.h"
#include "base/stable_array.h"
#include "engine/background/merger.h"
#include "engine/background/sweeper.h"
#include "engine/background/warmer.h"
#include "engine/database/hint_keeper.h"
#include "engine/database/opening_room.h"
#include "engine/database/reclaim_rows.h"
#include "engine/database/retry_queue.h"
#include "engine/database/transaction_watch.h"
#include "flugs/database.h"
#include "flugs/merge.h"
#include "flugs/retry.h"
#include "mvcc/transaction_slots.h"
#include "pmem/found_words.h"
#include "pmem/pool.h"
#include "recovery/phases.h"
#include "tables/catalog/catalog.h"
#include "tables/table/table.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// An open database behind the public classes: pool, catalogue, transaction slots.
/// Thread-safety: any thread, except opening and closing.
class DatabaseCore {
 public:
  /// What OpenOptions::clock comes to in a process that may run on so many processors.
  static CommitClock clock_in_use(CommitClock wanted, unsigned processors);
  static Result<std::unique_ptr<DatabaseCore>> open(const OpenOptions& options);
  /// On a pool that is open already (tests and crash images: a plain buffer).
  static Result<std::unique_ptr<DatabaseCore>> open(std::unique_ptr<pmem::Pool> pool, bool created,
                                                    const OpenOptions& options) {
    return open(std::move(pool), created, options, OpeningRoom::of(options.ready));
  }
  static Result<std::unique_ptr<DatabaseCore>> open(std::unique_ptr<pmem::Pool> pool, bool created,
                                                    const OpenOptions& options, OpeningRoom room);
  /// In a forked child it must not be destroyed: its threads are not there.
  ~DatabaseCore();
  /// Whether this process is a child that was forked since it was opened. Then nothing else may be
  /// called.
  bool is_forked() const noexcept { return is_forked_.load(std::memory_order_relaxed); }

  Result<TableId> create_table(const TableSchema& schema);
  Status drop_table(TableId id);
  Status rename_table(TableId id, const std::string& name);
  Status rename_column(TableId id, ColumnId column, const std::string& name);
  Status rename_key(KeyId key, const std::string& name);
  Result<ColumnId> add_column(TableId id, const ColumnSchema& column);
  Status drop_column(TableId id, ColumnId column);
  Status change_type(TableId id, ColumnId column, Type type);
  Result<KeyId> add_key(TableId id, const KeySchema& wanted);
  Status drop_key(KeyId key);
  Status skip_numbers(TableId id, std::int64_t last);
  Result<TableId> find_table(std::string_view name) const;
  std::vector<TableId> tables() const;
  /// Null when there is no such table or it was dropped.
  Table* table(TableId id) const noexcept {
    Table* found = known_table(id);
    return found == nullptr || found->is_dropped() ? nullptr : found;
  }

  Result<Transaction> begin(AccessMode mode, Isolation isolation = Isolation::kSnapshot);
  /// With kReadCommitted, before a call reads or writes: gives it a snapshot of its own. The first
  /// one goes on to hold rows back, so that row ids stay what they are.
  void begin_statement(TransactionContext& context) noexcept;
  /// Database::run.
  Status run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
             RetryReport* report);
  void prefetch(KeyId key, std::span<const Value> values) const noexcept {
    // A table that is dropped meanwhile keeps its place in DRAM until the database is closed.
    if (is_forked()) return;
    const Table* target = table(key.table);
    if (target != nullptr && target->keys().can_find(key.index) &&
        !target->index_build().is_deferred())
      target->reader().prefetch(key.index, values);
  }
  /// The transaction's context, made ready to write; null and `why` when it may not.
  Status prepare_write(TransactionContext* context);
  Result<std::uint64_t> commit(TransactionContext& context);
  void abort(TransactionContext& context) noexcept;
  /// Transaction::rollback_to and release.
  Status rollback_to(TransactionContext& context, const Savepoint& savepoint) noexcept;
  static Status release(TransactionContext& context, const Savepoint& savepoint) noexcept;
  /// For a transaction that is to end (TransactionContext::is_to_end), by its owner: undoes what it
  /// did and lets go of its snapshot, unless a call of it is still going through rows. Its slot
  /// stays taken until abort. The Status says what happened, kCancelled.
  Status end_as_asked(TransactionContext& context) noexcept;
  /// Whether one that wants to commit is to end instead.
  static bool refuses_commit(TransactionContext& context) noexcept;
  static Status set_time_limit(TransactionContext& context, std::chrono::milliseconds limit);
  /// Transaction::find_for_update, for a row that the transaction sees. kNotFound: somebody has
  /// committed a newer version, or that it is gone.
  Status lock_record(TransactionContext& context, const Table& table, std::uint32_t row,
                     RowLocks::Clock::time_point deadline);
  /// As the functions of Database.
  std::vector<TransactionInfo> transactions() const;
  Status cancel(TransactionId id) noexcept;
  Status end_abandoned(TransactionId id, std::chrono::milliseconds idle);

  pmem::Pool& pool() noexcept { return *pool_; }
  /// Threads that queries share. Those of merges and of opening are their own.
  Crew& query_crew() const noexcept { return query_crew_; }
  const RecoveryReport& report() const noexcept { return report_; }
  Result<MergeReport> merge(TableId id, const MergeOptions& options);
  Status set_merge_policy(TableId id, const MergePolicy& policy);
  Result<MergeStatus> merge_status(TableId id) const;
  /// A little of each table; true: there is more to do. Others want the catalogue meanwhile: call
  /// it again only after a pause.
  bool keep_hints(pmem::Persister& persister) noexcept;
  /// Those that opening left, of all dictionaries, as far as there is room for them.
  void enter_left_hints();
  Status finish_opening();
  Statistics statistics() const;
  Result<TableStatistics> statistics(TableId id) const;
  Status verify(const std::function<void(const Progress&)>& progress);

 private:
  static constexpr std::uint32_t kTableIdsMax = 1u << 22;  // creations in a pool's life
  static constexpr std::chrono::milliseconds kPatience{1000};

  DatabaseCore(std::unique_ptr<pmem::Pool> pool, const OpenOptions& options);
  IndexMode index_mode() const noexcept { return static_cast<IndexMode>(root().index_mode); }
  DatabaseLayout& root() const noexcept { return root_of(*pool_); }
  CatalogLayout& catalog() const noexcept {
    return *pool_->at(pmem::OffsetPtr<CatalogLayout>{root().catalog});
  }

  static void give_up_in_child(void* core) noexcept;
  Status create();
  Status recover(recovery::Phases& phases, OpeningRoom room);
  Result<std::uint64_t> load_catalog(recovery::Phases& phases);
  Status load_table(std::uint64_t offset, std::unique_ptr<Table>& table);
  Status impossible_id(const std::string& owner, std::uint32_t id) const;
  Status load_tables(recovery::Phases& phases);
  Result<std::uint64_t> resolve_transactions();
  Result<std::uint64_t> rebuild_dictionary_indexes(recovery::Phases& phases, OpeningRoom room);
  Result<std::uint64_t> rebuild_key_indexes(recovery::Phases& phases);
  Status begin_rebuild(OpeningRoom& room);
  Status sweep_tables(recovery::Phases& phases);
  void start();
  Result<std::uint64_t> start_threads();
  void start_keeping_hints();
  void start_sweeping();
  void start_warming();
  std::uint32_t hint_tail_max() const noexcept;

  Table* known_table(TableId id) const noexcept {
    if (id.value() >= kTableIdsMax) return nullptr;
    return __atomic_load_n(&tables_by_id_[id.value()], __ATOMIC_ACQUIRE);
  }
  Result<TransactionContext*> take_context(AccessMode mode, Isolation isolation);
  Status run_once(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                  RetryReport& report, bool& ended_by_merge);
  bool reads_hold(TransactionContext& context, std::uint64_t at) const;
  static bool references_hold(TransactionContext& context, const mvcc::Visibility& now);
  void undo(TransactionContext& context) noexcept;
  Status wait_for_writer(TransactionContext& context, const Table& table, std::uint32_t row,
                         RowLocks::Clock::time_point deadline);
  void end_claimed(TransactionContext& context) noexcept;
  void end_now(TransactionContext& context) noexcept;
  void leave(TransactionContext& context) noexcept;
  TransactionContext* context_of(TransactionId id) const noexcept;
  void clear(TransactionContext& context) noexcept;
  bool wait_for_transactions() noexcept { return wait_for_snapshots(slots_->advance()); }
  bool wait_for_snapshots(std::uint64_t since,
                          std::chrono::milliseconds patience = kPatience) noexcept;
  Status resolve_foreign_keys(TableSchema& schema) const;
  Status link_foreign_keys();
  Status introduce(Table& table, std::unique_lock<Mutex>& guard);
  Status check_unreferenced(const Table& table) const;
  static void name_referrers(const Table& parent);
  Result<std::size_t> place_for_key(Table& table, const KeySchema& key);
  Status make_key(Table& table, std::size_t place);
  static Status check_droppable(const Table& table, std::size_t index);
  void withdraw_key(Table& table, std::size_t place);
  void release_key(Table& table);
  Table* adopt(std::unique_ptr<Table> table);

  std::unique_ptr<pmem::Pool> pool_;
  std::unique_ptr<pmem::FoundWords> found_words_;  // while opening claims what it reaches
  OpenOptions options_;
  RecoveryReport report_;
  std::unique_ptr<mvcc::TransactionSlots> slots_;
  std::unique_ptr<RowReclaimer> reclaimer_;
  std::vector<std::unique_ptr<TransactionContext>> contexts_;  // by slot
  mutable Mutex ddl_mutex_;  // protects the catalogue and owned_tables_; rank: outermost
  std::vector<std::unique_ptr<Table>> owned_tables_;  // dropped ones too, emptied
  StableArray<Table*> tables_by_id_;
  std::uint32_t next_table_id_ = 1;
  std::atomic<bool> closing_{false};
  std::atomic<bool> is_forked_{false};
  RetryQueue retries_;
  mutable Crew query_crew_;
  AtFork at_fork_;
  std::unique_ptr<TransactionWatch> watch_;
  std::unique_ptr<RowLocks> row_locks_;
  std::atomic<std::uint64_t> ended_{0};      // transactions that were asked to
  std::unique_ptr<Merger> merger_;           // last, as it uses all of the above; so does
  std::unique_ptr<HintKeeper> hint_keeper_;  // null: who commits keeps hints
  std::unique_ptr<Sweeper> sweeper_;         // null: nothing was left unswept, or nobody is to
  std::unique_ptr<Warmer> warmer_;           // null: there is little to warm, or nobody is to
};

}  // namespace flugs::engine
