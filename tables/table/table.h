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
#include "tables/catalog/foreign_keys.h"
#include "tables/table/column_looks.h"
#include "tables/table/free_rows.h"
#include "tables/table/index_build.h"
#include "tables/table/merge_record.h"
#include "tables/table/row_reader.h"
#include "tables/table/row_sweep.h"
#include "tables/table/table_data.h"
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
  /// In the schema, the names of tables and keys that foreign keys refer to are those of now. Under
  /// the database's ddl_mutex_, when they may have changed.
  void name_parents();
  bool is_dropped() const noexcept { return data_.is_dropped(); }
  void set_dropped(bool dropped) noexcept {
    data_.dropped.store(dropped, std::memory_order_seq_cst);
  }
  /// Dropped for good: its rows are not its own any more.
  bool is_gone() const noexcept { return gone_.load(std::memory_order_acquire); }
  void set_gone() noexcept { gone_.store(true, std::memory_order_release); }

  // Each of these goes by one definition of the table, and begins again when columns change in the
  // midst of it in a way that it cannot go on with.
  Result<RowId> insert(TransactionContext& context, std::span<const Value> values);
  /// A row of which some values are given: others are their defaults, or NULL.
  Result<RowId> insert(TransactionContext& context, std::span<const ColumnValue> given);
  /// Of the auto-increment column; null when there is none.
  AutoIncrement* numbers() noexcept {
    return data_.constraints.any_of(RowConstraints::kNumbered) ? numbers_.get() : nullptr;
  }
  /// Row after row, `values` holds a value per column; all of them or none.
  Status insert_rows(TransactionContext& context, std::span<const Value> values,
                     std::span<RowId> ids);
  Result<RowId> update(TransactionContext& context, RowId row,
                       std::span<const ColumnValue> changes);
  Status remove(TransactionContext& context, RowId row);
  /// The same for one of several rows that one statement removes, and then its end, which undoes
  /// all since `mark` when it fails.
  Status remove_of_many(TransactionContext& context, RowId row) { return remove_row(context, row); }
  Status finish_removal(TransactionContext& context, const TransactionMark& mark) {
    return data_.constraints.any_of(RowConstraints::kReferenced) ? finish_statement(context, mark)
                                                                 : Status();
  }
  /// Names the record of this version in RowLocks.
  LockName lock_name(std::uint32_t row) const noexcept;
  /// Before one of its rows is locked in RowLocks for the first time; seq_cst, as the lock itself.
  /// From then on who writes a row looks there; who writes to other tables never does.
  void note_locked_rows() const noexcept {
    if (!has_locked_rows_.load(std::memory_order_seq_cst))
      has_locked_rows_.store(true, std::memory_order_seq_cst);
  }
  RowReader reader() const noexcept { return {data_, index_build_}; }

  // Foreign keys, see tables/table/table_references.cc. The first two under the database's
  // ddl_mutex_.
  /// That of the schema with this index leads to `parent`, and has been checked.
  void add_foreign_key(std::size_t index, Table& parent);
  /// Opening: the same, for what stands in the pool; `find` gives null for a table that is not
  /// there. Fails with kCorrupt.
  Status link_foreign_key(std::size_t index, FunctionRef<Table*(TableId id)> find);
  /// The table is dropped: nobody is asked on its behalf any more.
  void forget_parents();
  /// Those of all tables that lead here; null: none so far.
  const std::vector<const ForeignKey*>* referrers() const noexcept {
    return referrers_.load(std::memory_order_acquire);
  }
  std::span<const std::unique_ptr<ForeignKey>> foreign_keys() const noexcept {
    return foreign_keys_;
  }
  /// Whether foreign keys hold for a row that was written, or for those that referred to it. The
  /// value: whether that may change until the transaction commits. Fails with kConstraintViolated,
  /// having noted what was read; kConflict.
  Result<bool> check_references(const mvcc::Write& write, const mvcc::Visibility& visibility,
                                ReadSet* reads) const;
  /// Audit of foreign keys. Fails with kCorrupt.
  Status verify_references(const mvcc::Visibility& visibility) const;
  /// What an audit says of a row that refers to nothing.
  Status unreferenced(const ForeignKey& foreign, std::uint32_t row) const;

  /// Ends of a transaction, called by the database for what the context lists.
  void undo_index_changes(TransactionContext& context, std::size_t first);
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
  /// Whether rows may be given with so many values: all, or those of before columns were added.
  bool takes_width(const TableDefinition& now, std::size_t width) const noexcept;
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
  using Values = std::span<const Value>;
  using Changes = std::span<const ColumnValue>;
  Status check_value(const TableDefinition& now, std::size_t column, const Value& value) const {
    if (__builtin_expect(now.columns[column].takes(value), 1)) return {};
    return look_at_value(now, column, value);
  }
  Status look_at_value(const TableDefinition& now, std::size_t column, const Value& value) const;
  Status check_values(const TableDefinition& now, Values values) const;
  Status check_width(const TableDefinition& now, std::size_t width) const;
  std::size_t width_of(const TableDefinition& now, Values values,
                       std::span<const RowId> ids) const noexcept;
  Status default_of(const TableDefinition& now, std::size_t column, Value& value) const;
  Status complete(const TableDefinition& now, TransactionContext& context, Values& values,
                  std::size_t& width) const;
  Status complete_row(const TableDefinition& now, Changes given, std::vector<Value>& values) const;
  Status check_keys_free(TransactionContext& context, Values values) const;
  bool is_stored_last(std::size_t column, KeyMask kept) const noexcept;
  Status encode_new_row(TransactionContext& context, Values values, KeyMask kept,
                        bool& has_texts_left);
  Status store_texts_left(TransactionContext& context, std::uint32_t row, Values values,
                          KeyMask kept);
  Result<RowId> insert_values(const TableDefinition& now, TransactionContext& context,
                              Values values);
  Result<RowId> insert_constrained(const TableDefinition& now, TransactionContext& context,
                                   Values values);
  Result<RowId> insert_row(TransactionContext& context, Values values);
  Status insert_values(const TableDefinition& now, TransactionContext& context, Values values,
                       std::span<RowId> ids);
  Status insert_constrained_rows(const TableDefinition& now, TransactionContext& context,
                                 Values values, std::size_t width, std::span<RowId> ids);
  Status check_shape(Values values, std::size_t width, std::span<const RowId> ids) const;
  Status insert_checked_rows(TransactionContext& context, Values values, std::size_t width,
                             std::span<RowId> ids);
  Result<RowId> update_row(const TableDefinition& now, TransactionContext& context, RowId row,
                           Changes changes);
  Result<RowId> update_constrained(const TableDefinition& now, TransactionContext& context,
                                   RowId row, Changes changes);
  Status remove_row(TransactionContext& context, RowId row);
  Status remove_constrained(TransactionContext& context, RowId row);
  static Status finish_statement(TransactionContext& context, const TransactionMark& mark);
  RowId newest_since(const TransactionContext& context, const TransactionMark& mark,
                     RowId row) const noexcept;
  Status prepare_related() noexcept;
  Status act_on_children(TransactionContext& context, std::size_t write, RowsMade& made);
  Status act_on_child(TransactionContext& context, std::uint32_t row, Changes changes);
  bool keeps_reference(const ForeignKey& foreign, std::uint32_t row,
                       const mvcc::Visibility& visibility) const noexcept;
  Result<bool> check_parents(std::uint32_t row, const mvcc::Visibility& visibility,
                             ReadSet* reads) const;
  Result<bool> check_children(std::uint32_t row, const mvcc::Visibility& visibility,
                              ReadSet* reads) const;
  void set_referrers(std::vector<const ForeignKey*> referrers);
  Status number_rows(const TableDefinition& now, TransactionContext& context, Values& values,
                     std::size_t width);
  Status check_new_row(const TableDefinition& now, Values values) const;
  Status check_changed_row(const TableDefinition& now, std::uint32_t row, Changes changes) const;
  Result<std::uint32_t> take_row(TransactionContext& context);
  Status grant_rows(TransactionContext& context, LocalRows& local);
  void give_back(TransactionContext& context, std::uint32_t row);
  using KeyHashes = std::array<std::uint64_t, kKeysMax>;
  Status enter_indexes(TransactionContext& context, std::uint32_t row, std::uint32_t replaced,
                       KeyMask kept, KeyMask changed_keys, const KeyHashes& hashes);
  void hash_keys(std::uint32_t row, KeyMask keys, KeyHashes& hashes) const noexcept;
  void note_hashes(DeadRow& dead, KeyMask keys, const KeyHashes& hashes) const noexcept;
  Status write_new_row(TransactionContext& context, std::span<const columns::Cell> cells,
                       std::uint32_t& row);
  Status try_insert_batch(TransactionContext& context, Values values, std::size_t width,
                          std::span<columns::Cell> cells, std::span<RowId> ids);
  Status insert_batch(TransactionContext& context, Values values, std::size_t width,
                      std::span<columns::Cell> cells, std::span<RowId> ids);
  void withdraw(TransactionContext& context, std::span<const std::uint32_t> rows);
  void undo_inserts(TransactionContext& context, std::size_t writes, std::size_t changes);
  void note_inserted(TransactionContext& context, std::uint32_t row);
  bool is_giving_way(const TransactionContext& context, std::uint32_t row) const;
  Status respect_lock(TransactionContext& context, std::uint32_t row,
                      mvcc::VersionLayout& locked) const;
  Status lock_row(TransactionContext& context, std::uint32_t row, mvcc::VersionLayout*& locked);
  void note_deleted(TransactionContext& context, std::uint32_t row, mvcc::VersionLayout* locked,
                    std::uint16_t keys);
  Status encode_whole_row(TransactionContext& context, std::uint32_t row, Changes changes);
  Status check_changes(const TableDefinition& now, Changes changes) const;
  Status encode_changes(TransactionContext& context, std::uint32_t row, Changes changes);
  bool fits_constants(const columns::RowLayout& layout, std::size_t first) const noexcept;
  Status changed_meanwhile(TransactionContext& context) const;
  void need_altered(TransactionContext& context, const columns::RowLayout& layout) const;
  bool update_in_place(TransactionContext& context, std::uint32_t row, Changes changes);
  Result<std::uint32_t> make_version(TransactionContext& context, std::uint32_t row,
                                     Changes changes);
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
  std::vector<std::unique_ptr<ForeignKey>> foreign_keys_;
  std::atomic<const std::vector<const ForeignKey*>*> referrers_{nullptr};
  std::vector<std::unique_ptr<const std::vector<const ForeignKey*>>> referrer_lists_;
  mutable std::atomic<bool> has_locked_rows_{false};
  std::atomic<bool> gone_{false};
  Mutex merge_mutex_;                          // rank: before ddl_mutex_ of the database
  std::uint64_t replaced_readers_before_ = 0;  // snapshots; under merge_mutex_
  ColumnLooks looks_;                          // under merge_mutex_
  MergeRecord merge_record_;
  RowSweep row_sweep_{data_, free_rows_};
  IndexBuild index_build_{data_, row_sweep_};
  FreeRows free_rows_{data_.rows};
};

}  // namespace flugs::engine
