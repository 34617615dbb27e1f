#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "flugs/progress.h"
#include "tables/data/table_data.h"
#include "tables/keys/table_keys.h"
#include "tables/transactions/transaction_context.h"

namespace flugs {
class LongCall;
struct ColumnBatch;
}  // namespace flugs

namespace flugs::engine {

class ColumnsWriter;
class Table;
class TableColumns;

/// What one transaction writes to the rows of one table. A writer holds nothing: make one for each
/// statement.
///
/// The story of a write: values are checked against the definition (and numbered), they become
/// cells, a row is taken that no reader can reach, cells and stamps are stored, the row enters the
/// key indexes, and the transaction notes the write. An update locks the old version before it
/// makes the new one.
///
/// Invariants: a statement uses one definition of the table from its beginning to its end. When
/// columns change meanwhile in a way that it cannot go on with, it begins again
/// (with_definition_of_now). A statement that fails changes nothing.
///
/// Thread-safety: one thread, as the context.
class RowWriter final {
 public:
  RowWriter(Table& table, TransactionContext& context) noexcept;

  Result<RowId> insert(std::span<const Value> values);
  /// Inserts a row with the given values. Other columns get their defaults, or NULL.
  Result<RowId> insert(std::span<const ColumnValue> given);
  /// Inserts rows: `values` has row after row a value per column. All are inserted, or none.
  /// kCancelled: the caller asked to stop, or the transaction must end.
  Status insert_rows(std::span<const Value> values, std::span<RowId> ids,
                     const CallOptions& options = {});
  /// The same for rows that are given column by column (ColumnsWriter).
  Status insert_columns(const ColumnBatch& batch, std::span<RowId> ids,
                        const CallOptions& options = {});
  Result<RowId> update(RowId row, std::span<const ColumnValue> changes);
  Status remove(RowId row);

  /// For values that a call was given and turns out not to write: whether each fits its column.
  /// NULL passes. The call has been given a row that the table takes.
  Status check_unused(std::span<const Value> row) const;
  Status check_unused(std::span<const ColumnValue> changes) const;

  // Parts of a statement with several rows. Its foreign keys are followed at its end.
  Status remove_only(RowId row);
  Result<RowId> update_only(RowId row, std::span<const ColumnValue> changes);
  /// The end of a statement that removed rows one by one; undoes all since `mark` when it fails.
  /// kCancelled: the caller asked to stop.
  Status finish_removal(const TransactionMark& mark, LongCall& call);

 private:
  friend class ColumnsWriter;
  using KeyHashes = std::array<std::uint64_t, kKeysMax>;

  // Checks of values before anything is written: their number, their types, missing ones.
  Status check_width(const TableDefinition& now, std::size_t width) const;
  std::size_t width_of(const TableDefinition& now, std::span<const Value> values,
                       std::span<const RowId> ids) const noexcept;
  Status fit_value(const TableDefinition& now, std::size_t column, Value& value) const;
  Status fit_values(const TableDefinition& now, std::span<const Value>& values,
                    std::size_t width) const;
  Status fit_changes(const TableDefinition& now, std::span<const ColumnValue>& changes,
                     std::vector<ColumnValue>& fitted) const;
  Status default_of(const TableDefinition& now, std::size_t column, Value& value) const;
  Status complete(const TableDefinition& now, std::span<const Value>& values,
                  std::size_t& width) const;
  Status complete_row(const TableDefinition& now, std::span<const ColumnValue> given,
                      std::vector<Value>& values) const;
  Status number_rows(const TableDefinition& now, std::span<const Value>& values, std::size_t width);
  Status check_new_row(const TableDefinition& now, std::span<const Value> values) const;
  Status check_changed_row(const TableDefinition& now, std::uint32_t row,
                           std::span<const ColumnValue> changes) const;
  Status check_shape(std::span<const Value> values, std::size_t width,
                     std::span<const RowId> ids) const;

  // Statements of tables with constraints besides types, NULL and keys.
  Result<RowId> insert_constrained(const TableDefinition& now, std::span<const Value> values);
  Status insert_constrained_rows(const TableDefinition& now, std::span<const Value> values,
                                 std::size_t width, std::span<RowId> ids, LongCall& call);
  Result<RowId> update_constrained(const TableDefinition& now, RowId row,
                                   std::span<const ColumnValue> changes);
  Status remove_constrained(RowId row);
  RowId newest_since(const TransactionMark& mark, RowId row) const noexcept;

  // Rows that may be written.
  Result<std::uint32_t> take_row();
  Status take_rows(std::span<std::uint32_t> rows);
  Status grant_rows(LocalRows& local);
  bool fits_constants(const columns::RowLayout& layout, std::size_t first) const noexcept;
  Status changed_meanwhile() const;
  void give_back(std::uint32_t row);

  // Values become cells.
  Status encode_new_row(std::span<const Value> values, KeyMask kept, bool& has_texts_left);
  bool is_stored_last(std::size_t column, KeyMask kept) const noexcept;
  Status store_texts_left(std::uint32_t row, std::span<const Value> values, KeyMask kept);
  Status encode_changes(const columns::RowLayout& layout, std::span<const ColumnValue> changes);
  Status encode_whole_row(std::uint32_t row, std::span<const ColumnValue> changes);
  void need_altered(const columns::RowLayout& layout) const;

  // Long texts (LeftTexts).
  void note_written(std::size_t number, const columns::Column& column, const columns::Cell& cell);
  Status no_cell(Status failed) noexcept;
  void note_left(const RowView& view, std::size_t number);
  static bool may_replace_text(const columns::RowLayout& layout,
                               std::span<const ColumnValue> changes) noexcept {
    bool may = false;
    for (std::size_t i = 0; layout.has_texts() && i < changes.size(); ++i)
      may |= layout.kind(changes[i].column.value()) == columns::CellKind::kText;
    return may;
  }
  void note_replaced(std::uint32_t row, std::span<const ColumnValue> changes);
  void note_removed(const RowView& view);

  // Keys and indexes.
  Status check_keys_free(std::span<const Value> values);
  Status key_taken(std::size_t place, std::span<const Value> values, StatusCode why);
  void hash_keys(std::uint32_t row, KeyMask keys, KeyHashes& hashes,
                 const FoundRow& found = {}) const noexcept;
  KeyMask keys_changed(std::uint32_t row, std::uint32_t fresh, KeyMask kept,
                       std::span<const ColumnValue> changes) const noexcept;
  KeyMask hash_keys_of_new(std::span<const Value> values, KeyMask keys,
                           KeyHashes& hashes) const noexcept;
  void note_hashes(DeadRow& dead, KeyMask keys, const KeyHashes& hashes) const noexcept;
  Status enter_indexes(std::uint32_t row, std::uint32_t replaced, KeyMask kept,
                       KeyMask changed_keys, const KeyHashes& hashes);
  void note_key_conflict(std::uint16_t key, std::uint32_t row);
  void note_key_conflict(std::uint16_t key, std::span<const Value> values);
  void undo_index_changes(std::size_t first);

  // Writing one row, or a batch of rows.
  static void note_cells(const std::byte* row, const columns::RowLayout& layout) noexcept;
  Result<RowId> insert_values(const TableDefinition& now, std::span<const Value> values);
  Status insert_values(const TableDefinition& now, std::span<const Value> values,
                       std::span<RowId> ids, LongCall& call);
  Result<RowId> insert_row(std::span<const Value> values);
  Status insert_checked_rows(std::span<const Value> values, std::size_t width, std::span<RowId> ids,
                             LongCall& call);
  Status may_go_on(std::uint64_t done, std::uint64_t total, LongCall& call) const;
  Status insert_batch(std::span<const Value> values, std::size_t width,
                      std::span<columns::Cell> cells, std::span<RowId> ids);
  Status try_insert_batch(std::span<const Value> values, std::size_t width,
                          std::span<columns::Cell> cells, std::span<RowId> ids);
  Status write_new_row(std::span<const columns::Cell> cells, std::uint32_t& row);
  void withdraw(std::span<const std::uint32_t> rows);
  void undo_inserts(std::size_t writes, std::size_t changes);
  Result<RowId> update_row(const TableDefinition& now, RowId row_id,
                           std::span<const ColumnValue> changes);
  bool update_in_place(const RowChunk& chunk, std::uint32_t row,
                       std::span<const ColumnValue> changes);
  Result<std::uint32_t> make_version(const RowChunk& chunk, std::uint32_t row,
                                     std::span<const ColumnValue> changes);
  Status lock_row(std::uint32_t row, mvcc::VersionLayout*& locked);
  bool is_giving_way(std::uint32_t row) const;
  /// Whether another transaction has committed a change of the row, whatever the snapshot.
  bool has_newer_version(const mvcc::VersionLayout& version) const noexcept {
    return context_.visibility.resolve(version.deleted).fate == mvcc::Visibility::Fate::kCommitted;
  }
  Status respect_lock(std::uint32_t row, mvcc::VersionLayout& locked) const;
  void note_inserted(std::uint32_t row);
  void note_deleted(std::uint32_t row, mvcc::VersionLayout* locked, std::uint16_t keys);

  Table& table_;
  TableData& data_;
  TableColumns& columns_;
  TransactionContext& context_;
};

}  // namespace flugs::engine
