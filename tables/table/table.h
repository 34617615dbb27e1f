#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "flugs/database.h"
#include "flugs/function_ref.h"
#include "flugs/schema.h"
#include "flugs/transaction.h"
#include "tables/table/column_looks.h"
#include "tables/table/free_rows.h"
#include "tables/table/index_build.h"
#include "tables/table/merge_record.h"
#include "tables/table/row_reader.h"
#include "tables/table/row_sweep.h"
#include "tables/table/table_data.h"
#include "tables/table/table_references.h"
#include "tables/transactions/auto_increment.h"
#include "tables/transactions/transaction_context.h"

namespace flugs::engine {

/// A table: joins columns, rows with their MVCC entries, and keys. Every function that reads or
/// writes rows runs inside a transaction.
/// Thread-safety: any thread with its own context, except opening and dropping.
/// Source: SOFORT (DaMoN 2014), sections 2 and 4.
class Table final {
 public:
  Table(pmem::Pool& pool, TableLayout& layout, StoredSchema stored);

  /// Opening: claims columns and rows.
  Status load();
  /// The same for audits: goes on behind a column or list that is damaged. `visit(part, status)`
  /// for each, damaged or not.
  void load_what_is_whole(FunctionRef<void(const std::string& part, const Status& status)> visit);

  TableId id() const noexcept { return data_.id(); }
  const TableData& data() const noexcept { return data_; }
  TableData& data() noexcept { return data_; }
  /// As it is now; what it was may be read as long as the table is there. Who writes takes it once
  /// (TableDefinition); who asks again may see another.
  const TableDefinition& definition() const noexcept { return data_.definition(); }
  const TableSchema& schema() const noexcept { return definition().schema(); }
  const std::string& name() const noexcept { return schema().name; }
  StoredSchema stored() const;  ///< as it is in the pool; under the database's ddl_mutex_
  /// A schema like that of now but for what has been changed: durable, and valid for all, on
  /// return. Under the database's ddl_mutex_. Fails with kInvalidArgument (complete_schema),
  /// kOutOfSpace; nothing has changed then.
  /// `take_over` is called between: it is durable, and nobody has it yet.
  Status alter(StoredSchema next, FunctionRef<void()> take_over = [] {});
  /// Both under the database's ddl_mutex_; see Database. `hint_tail_max`: set_hint_tail_max.
  Result<ColumnId> add_column(const ColumnSchema& wanted, std::uint32_t hint_tail_max);
  Status drop_column(ColumnId id);
  /// The same, and under merge_mutex().
  Status change_type(ColumnId id, Type type);
  // Columns that begin anew, see tables/table/table_renewal.cc. Under merge_mutex().
  /// Of what the column's newest edition owns in the pool, its index there included.
  std::uint64_t bytes_of_column(std::size_t i) const;
  /// What it would take, at most, to hold its values without a dictionary, if the chunks were
  /// merged for which `is_merged`. Looks at every text.
  std::uint64_t bytes_needed(std::size_t i, mvcc::TransactionSlots& slots,
                             FunctionRef<bool(std::size_t chunk)> is_merged) const;
  /// What a merge of all chunks and groups would write of its texts, at most.
  std::uint64_t bytes_copied(std::size_t i, mvcc::TransactionSlots& slots) const;
  /// The column, not a dropped one, gets another edition of the same type, which holds values
  /// directly and owns nothing so far. Under the database's ddl_mutex_, too. Fails with kBusy
  /// (there are as many editions as can be), kOutOfSpace.
  Status renew_column(std::size_t number);
  /// Whether the chunk has cells of a former edition that owns at least so many bytes in the pool,
  /// or the group columns that a merge would write anew: it has to before such an edition can go.
  bool keeps_former(std::size_t chunk, std::uint64_t bytes) const;
  ColumnLooks& looks() noexcept { return looks_; }
  bool has_left_over() const noexcept;
  /// Gives back what former editions own of which no row is left; bytes in the pool. No transaction
  /// is left that began before the last such row went, or before a column began anew. Under the
  /// database's ddl_mutex_, too.
  std::uint64_t release_former_editions();
  /// Whether columns have begun anew, without their dictionaries, as these do not pay any more.
  /// Nothing when somebody else changes the table, or merges it: for the next time.
  bool leave_dictionaries(TransactionContext& context);
  bool is_dropped() const noexcept { return data_.is_dropped(); }
  void set_dropped(bool dropped) noexcept {
    data_.dropped.store(dropped, std::memory_order_seq_cst);
  }
  /// Dropped for good: its rows are not its own any more.
  bool is_gone() const noexcept { return gone_.load(std::memory_order_acquire); }
  void set_gone() noexcept { gone_.store(true, std::memory_order_release); }

  /// Of the auto-increment column; null when there is none.
  AutoIncrement* numbers() noexcept {
    return data_.constraints.any_of(RowConstraints::kNumbered) ? numbers_.get() : nullptr;
  }
  /// The source of numbers, and the column that it numbers, also when that has been dropped.
  AutoIncrement* number_source() noexcept { return numbers_.get(); }
  std::size_t numbered_column() const noexcept { return numbered_; }
  /// Names the record of this version in RowLocks.
  LockName lock_name(std::uint32_t row) const noexcept;
  /// Before one of its rows is locked in RowLocks for the first time; seq_cst, as the lock itself.
  /// From then on who writes a row looks there; who writes to other tables never does.
  void note_locked_rows() const noexcept {
    if (!has_locked_rows_.load(std::memory_order_seq_cst))
      has_locked_rows_.store(true, std::memory_order_seq_cst);
  }
  bool has_locked_rows() const noexcept { return has_locked_rows_.load(std::memory_order_seq_cst); }
  RowReader reader() const noexcept { return {data_, index_build_}; }
  TableReferences& references() noexcept { return references_; }
  const TableReferences& references() const noexcept { return references_; }
  RowSweep& row_sweep() noexcept { return row_sweep_; }
  const RowSweep& row_sweep() const noexcept { return row_sweep_; }
  IndexBuild& index_build() noexcept { return index_build_; }
  const IndexBuild& index_build() const noexcept { return index_build_; }
  FreeRows& free_rows() noexcept { return free_rows_; }
  const FreeRows& free_rows() const noexcept { return free_rows_; }
  /// Held by a merge, and by dropping.
  Mutex& merge_mutex() noexcept { return merge_mutex_; }
  // What merges have replaced, and the row ids of chunks that they emptied, until nobody is left
  // who may read it. Under merge_mutex().
  bool has_replaced() const { return data_.rows.has_replaced() || data_.runs.has_replaced(); }
  /// Transactions that began before `time` may read what has been replaced so far; no others.
  void note_readers_of_replaced(std::uint64_t time) noexcept { replaced_readers_before_ = time; }
  std::uint64_t replaced_readers_before() const noexcept { return replaced_readers_before_; }
  /// Gives it back. No transaction that began before is left.
  void release_replaced();
  MergeRecord& merge_record() noexcept { return merge_record_; }
  const MergeRecord& merge_record() const noexcept { return merge_record_; }
  /// `policy` is in order.
  void set_merge_policy(const MergePolicy& policy) {
    merge_record_.set_policy(policy);
    data_.rows.set_delta_bytes_max(policy.delta_bytes_max);
  }
  IndexRuns& runs() noexcept { return data_.runs; }
  const IndexRuns& runs() const noexcept { return data_.runs; }
  RowStore& rows() noexcept { return data_.rows; }
  const RowStore& rows() const noexcept { return data_.rows; }
  const columns::ColumnArray& columns() const noexcept { return data_.columns; }
  /// Columns that were dropped keep their numbers; what rows have of them is not to be shown.
  bool has_dropped_columns() const noexcept { return data_.has_dropped_columns(); }
  bool is_dropped_column(std::size_t column) const noexcept {
    return data_.is_dropped_column(column);
  }
  bool has_column(ColumnId column) const noexcept { return data_.has_column(column); }
  /// What is said to a ColumnId that names none, or none any longer.
  Status no_column(ColumnId column) const { return data_.no_column(column); }
  TableKeys& keys() noexcept { return data_.keys; }
  const TableKeys& keys() const noexcept { return data_.keys; }
  /// Adding a key: from then on writers keep it up. Its columns are there. `place` is free, or the
  /// next one.
  void begin_key(std::size_t place, const KeySchema& key);
  /// The key is whole: durable, found, and in no index run from before. Under merge_mutex() and the
  /// database's ddl_mutex_; `next` is a schema with it. Fails as `alter` does.
  Status finish_key(std::size_t place, StoredSchema next);

  /// Dropping: gives everything but the table's own extent back, DRAM too.
  void release_all();

 private:
  Table(pmem::Pool& pool, TableLayout& layout, std::vector<ChangedColumnLayout> changed,
        StoredSchema&& stored);
  Status claim_schema();
  void make_columns();
  // table_editions.cc
  void make_editions();
  Status load_former_editions();
  void settle_editions() noexcept;
  Status check_unreferred(const StoredSchema& stored, std::size_t number) const;
  Status begin_edition(std::size_t number, Type type);
  /// Whether groups need what a former edition owns: numbers they hold themselves.
  static bool needs_groups(const columns::Column& column) noexcept { return column.is_text(); }
  // table_renewal.cc
  std::uint64_t text_bytes_in_chunk(std::size_t i, std::size_t chunk, mvcc::TransactionSlots& slots,
                                    bool with_dead) const;
  bool is_left_over(std::size_t i, const columns::Column& former) const noexcept;
  bool has_middle_to_forget(std::size_t i) const noexcept;
  void forget_editions();
  Status check_change(const StoredSchema& stored, std::size_t number, Type type) const;
  std::unique_ptr<columns::Column> make_added(std::uint64_t offset, const std::string& called,
                                              columns::Decoder& decoder);
  std::vector<pmem::Extent> added_extents() const;
  Status claim_added_columns();
  void release_added_columns();
  Status load_columns(bool dropped);
  Status load_dropped(std::size_t number);
  void take_names_over();

  std::vector<ChangedColumnLayout> changed_columns_;  // under ddl_mutex_
  TableData data_;
  /// Dropped columns that nothing had values of at opening: others stand in for them, which own
  /// nothing.
  struct Forgotten {
    std::unique_ptr<columns::ColumnLayout> layout;  // of that which stands in
    std::unique_ptr<columns::Column> column;
  };
  std::vector<Forgotten> forgotten_;
  std::unique_ptr<AutoIncrement> numbers_;  // of the column numbered_; null: there is none
  std::size_t numbered_ = 0;
  mutable std::atomic<bool> has_locked_rows_{false};
  std::atomic<bool> gone_{false};
  Mutex merge_mutex_;                          // rank: before ddl_mutex_ of the database
  std::uint64_t replaced_readers_before_ = 0;  // snapshots; under merge_mutex_
  ColumnLooks looks_;                          // under merge_mutex_
  MergeRecord merge_record_;
  RowSweep row_sweep_{data_, free_rows_};
  IndexBuild index_build_{data_, row_sweep_};
  TableReferences references_{*this};
  FreeRows free_rows_{data_.rows};
};

}  // namespace flugs::engine
