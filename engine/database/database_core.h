#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/crew.h"
#include "base/fork.h"
#include "engine/database/background_threads.h"
#include "engine/database/catalog.h"
#include "engine/database/constraint_changes.h"
#include "engine/database/opening_budget.h"
#include "engine/database/retry_queue.h"
#include "engine/database/schema_changes.h"
#include "engine/database/space_advice.h"
#include "engine/database/transaction_manager.h"
#include "flugs/database.h"
#include "flugs/retry.h"

namespace flugs::engine {

class DurableTokens;

/// An open database, behind the public classes. It owns the parts that an open database is made of,
/// passes calls on to them, and does what concerns several of them: merges, statistics, audits, and
/// trying a transaction again.
///
/// Invariants:
/// * A part uses only parts that are declared before it, and the threads, which stop first.
/// * In a forked child nothing but `is_forked` may be called.
///
/// Thread-safety: any thread, except opening and closing.
class DatabaseCore final {
 public:
  /// The clock that Tuning::clock means in a process that may run on this many processors.
  static CommitClock clock_in_use(CommitClock wanted, unsigned processors);
  static Result<std::unique_ptr<DatabaseCore>> open(const OpenOptions& options);
  /// Opens a database on a pool that is already open (tests and crash images: a plain buffer).
  static Result<std::unique_ptr<DatabaseCore>> open(std::unique_ptr<pmem::Pool> pool, bool created,
                                                    const OpenOptions& options) {
    return open(std::move(pool), created, options, OpeningBudget::of(options.ready));
  }
  static Result<std::unique_ptr<DatabaseCore>> open(std::unique_ptr<pmem::Pool> pool, bool created,
                                                    const OpenOptions& options,
                                                    OpeningBudget budget);
  /// Must not be called in a forked child, which does not have the threads.
  ~DatabaseCore();
  bool has_open_transactions() const noexcept { return transactions_.open_count() != 0; }
  /// Fails with kBusy when a transaction is open; the message says that `what` needs that none is.
  Status no_open_transactions(std::string_view what) const;
  /// The Database was destroyed while transactions are open: the last one that ends destroys the
  /// core. No call of a transaction may be running.
  static void leave_to_transactions(std::unique_ptr<DatabaseCore> core) noexcept;
  bool is_left() const noexcept { return is_left_.load(std::memory_order_relaxed); }
  /// Calls `end`, which ends a transaction. The core may be gone afterwards.
  void end_left_open(FunctionRef<void()> end) noexcept;
  /// Whether this process is a child that was forked since the database was opened. Then nothing
  /// else may be called.
  bool is_read_only() const noexcept { return options_.mode == OpenMode::kReadOnly; }
  bool is_forked() const noexcept { return is_forked_.load(std::memory_order_relaxed); }

  Catalog& catalog() noexcept { return catalog_; }
  Table* table(TableId id) const noexcept { return catalog_.table(id); }
  /// The data of a table, for callers that only read it; null when there is no such table.
  const TableData* table_data(TableId id) const noexcept;
  Result<TableId> find_table(std::string_view name) const { return catalog_.find_table(name); }
  std::vector<TableId> tables() const { return catalog_.tables(); }
  Result<TableId> create_table(const TableSchema& schema) { return catalog_.create_table(schema); }
  Result<std::vector<TableId>> create_tables(std::span<const TableSchema> schemas) {
    return catalog_.create_tables(schemas);
  }
  Status drop_table(TableId id) { return catalog_.drop_table(id); }
  Status rename_table(TableId id, const std::string& name) {
    return schema_changes_.rename_table(id, name);
  }
  Status rename_column(TableId id, ColumnId column, const std::string& name) {
    return schema_changes_.rename_column(id, column, name);
  }
  Status rename_key(KeyId key, const std::string& name) {
    return schema_changes_.rename_key(key, name);
  }
  Result<ColumnId> add_column(TableId id, const ColumnSchema& column) {
    return schema_changes_.add_column(id, column);
  }
  Status drop_column(TableId id, ColumnId column) {
    return schema_changes_.drop_column(id, column);
  }
  Status change_type(TableId id, ColumnId column, Type type) {
    return schema_changes_.change_type(id, column, type);
  }
  Status set_delta_layout(TableId id, DeltaLayout layout,
                          std::vector<std::vector<std::string>> column_groups = {}) {
    return schema_changes_.set_delta_layout(id, layout, std::move(column_groups));
  }
  Result<KeyId> add_key(TableId id, const KeySchema& wanted, const CallOptions& options = {}) {
    return key_changes_.add_key(id, wanted, options);
  }
  Status drop_key(KeyId key) { return key_changes_.drop_key(key); }
  Status add_check(TableId id, const CheckSchema& wanted, const CallOptions& options = {}) {
    return constraint_changes_.add_check(id, wanted, options);
  }
  Status drop_check(TableId id, std::string_view name) {
    return constraint_changes_.drop_check(id, name);
  }
  Status set_not_null(TableId id, ColumnId column, bool not_null, const CallOptions& options = {}) {
    return constraint_changes_.set_not_null(id, column, not_null, options);
  }
  Status set_default(TableId id, ColumnId column, const std::optional<Value>& value) {
    return constraint_changes_.set_default(id, column, value);
  }
  Status add_foreign_key(TableId id, const ForeignKeySchema& wanted,
                         const CallOptions& options = {}) {
    return constraint_changes_.add_foreign_key(id, wanted, options);
  }
  Status drop_foreign_key(TableId id, std::string_view name) {
    return constraint_changes_.drop_foreign_key(id, name);
  }
  Status skip_numbers(TableId id, std::int64_t last);
  Result<Prepared> prepare(KeyId key, std::span<const ColumnId> columns) const;
  /// A number that no other opening in this process has; not 0.
  std::uint64_t opening() const noexcept { return opening_; }

  Result<Transaction> begin(AccessMode mode, Isolation isolation = Isolation::kSnapshot);
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
  TransactionManager& transaction_manager() noexcept { return transactions_; }
  /// Like the functions of Database with these names.
  std::vector<TransactionInfo> transactions() const { return transactions_.open(); }
  Status cancel(TransactionId id) noexcept { return transactions_.cancel(id); }
  Status end_abandoned(TransactionId id, std::chrono::milliseconds idle) {
    return transactions_.end_abandoned(id, idle);
  }

  DurableTokens durable_tokens() const noexcept;
  pmem::Pool& pool() noexcept { return *pool_; }
  /// Threads that queries share. Merges and opening have threads of their own.
  Crew& query_crew() const noexcept { return query_crew_; }
  const RecoveryReport& report() const noexcept { return report_; }
  Result<MergeReport> merge(TableId id, const MergeOptions& options);
  Status set_merge_policy(TableId id, const MergePolicy& policy);
  Result<MergeStatus> merge_status(TableId id) const;
  Result<MergeEstimate> estimate_merge(TableId id);
  /// Before an answer goes to the user: completes the message of kOutOfSpace (SpaceAdvice).
  void explain(Status& answer) {
    if (__builtin_expect(answer.code() == StatusCode::kOutOfSpace, 0))
      answer = space_advice_.complete(answer);
  }
  template <typename T>
  void explain(Result<T>& answer) {
    if (__builtin_expect(answer.code() == StatusCode::kOutOfSpace, 0))
      answer = space_advice_.complete(answer.status());
  }
  Status finish_opening();
  Statistics statistics() const;
  Result<TableStatistics> statistics(TableId id) const;
  Status verify(const CallOptions& options = {});

 private:
  DatabaseCore(std::unique_ptr<pmem::Pool> pool, const OpenOptions& options);
  mvcc::TransactionSlots& slots() noexcept { return transactions_.slots(); }
  IndexPlace index_place() const noexcept { return static_cast<IndexPlace>(root().index_place); }
  DatabaseLayout& root() const noexcept { return root_of(*pool_); }

  static void give_up_in_child(void* core) noexcept;
  Result<std::uint64_t> start_threads();

  Status run_once(FunctionRef<Status(Transaction&)> work, const RetryOptions& options,
                  RetryReport& report, bool& ended_by_merge);
  std::unique_ptr<pmem::Pool> pool_;
  OpenOptions options_;
  RecoveryReport report_;
  TransactionManager transactions_;
  Catalog catalog_;
  SchemaChanges schema_changes_;
  KeyChanges key_changes_;
  ConstraintChanges constraint_changes_;
  SpaceAdvice space_advice_;
  const std::uint64_t opening_;
  std::atomic<bool> is_forked_{false};
  std::atomic<bool> is_left_{false};
  std::mutex left_mutex_;
  RetryQueue retries_;
  mutable Crew query_crew_;
  AtFork at_fork_;
  BackgroundThreads threads_;  // last: they use all of the above
};

}  // namespace flugs::engine
