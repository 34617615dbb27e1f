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
#include "engine/database/background_threads.h"
#include "engine/database/opening_room.h"
#include "engine/database/retry_queue.h"
#include "engine/database/transaction_manager.h"
#include "flugs/database.h"
#include "flugs/merge.h"
#include "flugs/retry.h"
#include "pmem/pool/found_words.h"
#include "pmem/pool/pool.h"
#include "recovery/phases.h"
#include "tables/catalog/catalog.h"
#include "tables/table/table.h"

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
  /// Database::run.
  Status run(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
             RetryReport* report);
  void prefetch(KeyId key, std::span<const Value> values) const noexcept {
    // A table that is dropped meanwhile keeps its place in DRAM until the database is closed.
    if (is_forked()) return;
    const Table* target = table(key.table);
    if (target != nullptr && target->keys().can_find(key.index) && !target->is_unbuilt())
      target->prefetch(key.index, values);
  }
  TransactionManager& transaction_manager() noexcept { return transactions_; }
  /// As the functions of Database.
  std::vector<TransactionInfo> transactions() const { return transactions_.open(); }
  Status cancel(TransactionId id) noexcept { return transactions_.cancel(id); }
  Status end_abandoned(TransactionId id, std::chrono::milliseconds idle) {
    return transactions_.end_abandoned(id, idle);
  }

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

  DatabaseCore(std::unique_ptr<pmem::Pool> pool, const OpenOptions& options);
  mvcc::TransactionSlots& slots() noexcept { return transactions_.slots(); }
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
  void start() { transactions_.start(options_.slots_max, ddl_mutex_, tables_by_id_); }
  Result<std::uint64_t> start_threads();

  Table* known_table(TableId id) const noexcept {
    if (id.value() >= kTableIdsMax) return nullptr;
    return __atomic_load_n(&tables_by_id_[id.value()], __ATOMIC_ACQUIRE);
  }
  Status run_once(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                  RetryReport& report, bool& ended_by_merge);
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
  TransactionManager transactions_;
  mutable Mutex ddl_mutex_;  // protects the catalogue and owned_tables_; rank: outermost
  std::vector<std::unique_ptr<Table>> owned_tables_;  // dropped ones too, emptied
  StableArray<Table*> tables_by_id_;
  std::uint32_t next_table_id_ = 1;
  std::atomic<bool> closing_{false};
  std::atomic<bool> is_forked_{false};
  RetryQueue retries_;
  mutable Crew query_crew_;
  AtFork at_fork_;
  BackgroundThreads threads_;  // last: they use all of the above
};

}  // namespace flugs::engine
