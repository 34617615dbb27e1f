#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "tables/data/free_rows.h"
#include "tables/data/merge_record.h"
#include "tables/data/reclaim_checks.h"
#include "tables/data/table_data.h"
#include "tables/opening/index_build.h"
#include "tables/opening/row_sweep.h"
#include "tables/table/column_reclaim.h"
#include "tables/table/row_reader.h"
#include "tables/table/table_columns.h"
#include "tables/table/table_references.h"
#include "tables/transactions/row_locks.h"

namespace flugs::engine {

class TransactionContext;

/// A table: owns its data and the parts that act on it. Each part is a class of its own, and takes
/// what it works on; the table only puts them together, opens and drops them.
///
///   TableData        schema, columns, rows, keys and index runs, side by side
///   RowReader        reads rows, RowWriter writes them: made for each statement of a transaction
///   TableReferences  foreign keys, followed by Cascade at the end of a statement
///   TableColumns     adds, drops and changes columns; ColumnReclaim rewrites them to reclaim space
///   FreeRows, RowSweep, IndexBuild   rows to be used again; work that opening defers
///
/// Thread-safety: any thread with its own context, except opening and dropping.
/// Source: SOFORT (DaMoN 2014), sections 2 and 4.
class Table final {
 public:
  Table(pmem::Pool& pool, TableLayout& layout, StoredSchema stored);

  /// Opening: claims columns and rows.
  Status load();
  /// The same for audits: continues after a damaged column or list. Calls `visit(part, status)` for
  /// each part, damaged or not.
  void load_what_is_whole(FunctionRef<void(const std::string& part, const Status& status)> visit);

  TableId id() const noexcept { return data_.id(); }
  const TableData& data() const noexcept { return data_; }
  TableData& data() noexcept { return data_; }
  /// The present definition. A former one may be read as long as the table exists. A writer takes
  /// it once (TableDefinition), because another call may return a newer one.
  const TableDefinition& definition() const noexcept { return data_.definition(); }
  const TableSchema& schema() const noexcept { return definition().schema(); }
  const std::string& name() const noexcept { return schema().name; }
  ReclaimChecks& reclaim_checks() noexcept { return reclaim_checks_; }
  /// Rewrites columns without their dictionaries if these no longer pay; true if it did. While
  /// another thread changes or merges the table it does nothing: the next call tries again.
  bool give_up_dictionaries(TransactionContext& context);
  bool is_dropped() const noexcept { return data_.is_dropped(); }
  void set_dropped(bool dropped) noexcept {
    data_.dropped.store(dropped, std::memory_order_seq_cst);
  }
  /// Dropped for good: its rows may belong to others.
  bool is_gone() const noexcept { return gone_.load(std::memory_order_acquire); }
  void set_gone() noexcept { gone_.store(true, std::memory_order_release); }

  /// The numbers of the auto-increment column; null when there is none.
  AutoIncrement* numbers() noexcept {
    return data_.constraints.any_of(RowConstraints::kNumbered) ? columns_.number_source() : nullptr;
  }
  /// The auto-increment number in the values of a whole row; 0 without one.
  std::int64_t number_of(std::span<const Value> row) noexcept {
    const bool has_number = numbers() != nullptr && columns_.numbered_column() < row.size();
    return __builtin_expect(has_number, 0) ? row[columns_.numbered_column()].raw() : 0;
  }
  /// Names the record of this version in RowLocks.
  LockName lock_name(std::uint32_t row) const noexcept;
  /// Called before a row is locked in RowLocks for the first time; seq_cst, like the lock itself.
  /// From then on writers of the table look there; writers of other tables never do.
  void note_locked_rows() const noexcept {
    if (!has_locked_rows_.load(std::memory_order_seq_cst))
      has_locked_rows_.store(true, std::memory_order_seq_cst);
  }
  bool has_locked_rows() const noexcept { return has_locked_rows_.load(std::memory_order_seq_cst); }
  RowReader reader() const noexcept { return {data_, index_build_}; }
  TableColumns& table_columns() noexcept { return columns_; }
  const TableColumns& table_columns() const noexcept { return columns_; }
  ColumnReclaim column_reclaim() noexcept { return {data_, columns_, index_build_.mutex()}; }
  TableReferences& references() noexcept { return references_; }
  const TableReferences& references() const noexcept { return references_; }
  RowSweep& row_sweep() noexcept { return row_sweep_; }
  const RowSweep& row_sweep() const noexcept { return row_sweep_; }
  IndexBuild& index_build() noexcept { return index_build_; }
  const IndexBuild& index_build() const noexcept { return index_build_; }
  FreeRows& free_rows() noexcept { return free_rows_; }
  const FreeRows& free_rows() const noexcept { return free_rows_; }
  /// A merge holds it, and so does dropping.
  Mutex& merge_mutex() noexcept { return merge_mutex_; }
  // Chunks that merges have replaced, and the row ids of chunks that they emptied, are kept until
  // no transaction is left that may read them. Under merge_mutex().
  bool has_replaced() const {
    return data_.rows.has_replaced() || data_.runs.has_replaced() || !replaced_texts_.empty();
  }
  /// Bytes of memory of texts that readers of row groups have made of compressed ones.
  std::uint64_t read_text_bytes() const noexcept {
    return data_.columns.read_text_memory().bytes();
  }
  /// Readers make them anew; those that are there are replaced, but for texts of keys. False: there
  /// are none.
  bool replace_read_texts();
  /// Only transactions that began before `time` may read what has been replaced so far.
  void note_readers_of_replaced(std::uint64_t time) noexcept { replaced_readers_before_ = time; }
  std::uint64_t replaced_readers_before() const noexcept { return replaced_readers_before_; }
  /// Whether the pool has refused space for data (pmem::SpaceReport::refusals) since the last call.
  bool take_refusals(std::uint64_t refusals) noexcept {
    return std::exchange(refusals_, refusals) != refusals;
  }
  /// Frees what was replaced. Call it when no transaction is left that began before.
  void release_replaced();
  MergeRecord& merge_record() noexcept { return merge_record_; }
  const MergeRecord& merge_record() const noexcept { return merge_record_; }
  /// `policy` must be valid.
  void set_merge_policy(const MergePolicy& policy) {
    merge_record_.set_policy(policy);
    data_.rows.set_delta_bytes_max(policy.delta_bytes_max);
    data_.columns.read_text_memory().set_limit(policy.read_text_bytes_max);
  }
  IndexRuns& runs() noexcept { return data_.runs; }
  const IndexRuns& runs() const noexcept { return data_.runs; }
  RowStore& rows() noexcept { return data_.rows; }
  const RowStore& rows() const noexcept { return data_.rows; }
  const columns::ColumnArray& columns() const noexcept { return data_.columns; }
  /// Dropped columns keep their numbers; their values in rows must not be shown.
  bool has_dropped_columns() const noexcept { return data_.has_dropped_columns(); }
  bool is_dropped_column(std::size_t column) const noexcept {
    return data_.is_dropped_column(column);
  }
  bool has_column(ColumnId column) const noexcept { return data_.has_column(column); }
  /// The status for a ColumnId that names no column, or one that was dropped.
  Status no_column(ColumnId column) const { return data_.no_column(column); }
  TableKeys& keys() noexcept { return data_.keys; }
  const TableKeys& keys() const noexcept { return data_.keys; }
  /// Called when the table is dropped: frees everything but the table's own extent, with DRAM.
  void release_all();

 private:
  Table(pmem::Pool& pool, TableLayout& layout, std::vector<ChangedColumnLayout> changed,
        StoredSchema&& stored);

  TableData data_;
  TableColumns columns_;
  mutable std::atomic<bool> has_locked_rows_{false};
  std::atomic<bool> gone_{false};
  Mutex merge_mutex_;                          // rank: before ddl_mutex_ of the database
  std::uint64_t replaced_readers_before_ = 0;  // snapshots; under merge_mutex_
  std::uint64_t refusals_ = 0;                 // at the last merge; under merge_mutex_
  ReclaimChecks reclaim_checks_;               // under merge_mutex_
  RowGroup::TakenTexts replaced_texts_;        // under merge_mutex_
  MergeRecord merge_record_;
  RowSweep row_sweep_{data_, free_rows_};
  IndexBuild index_build_{data_, row_sweep_};
  TableReferences references_{*this};
  FreeRows free_rows_{data_.rows};
};

}  // namespace flugs::engine
