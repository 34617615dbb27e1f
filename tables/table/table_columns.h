#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "columns/column/column.h"
#include "flugs/function_ref.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "pmem/space/extent_allocator.h"
#include "tables/catalog/schema_block.h"
#include "tables/transactions/auto_increment.h"

namespace flugs::engine {

class TableReferences;
struct TableData;

/// The columns of a table as its schema names them: makes and loads them at opening, adds, drops
/// and changes them later, and writes the schema that says so. Columns keep their numbers for good.
/// A column whose type or way of storing changes gets another edition; rows keep the edition they
/// were written with until a merge rewrites them (decisions 0023, 0025, 0026).
///
/// Invariants: what a schema names is durable before the schema is. No chunk is made between a
/// change's schema and the columns that it names (RowStore::ColumnsChange).
///
/// Thread-safety: under the database's ddl_mutex_, except opening; settle_editions under the
/// table's merge_mutex, too.
class TableColumns final {
 public:
  TableColumns(TableData& data, TableReferences& references,
               std::vector<ChangedColumnLayout> changed);

  /// Makes the columns that the schema names. For creation and opening, before all else.
  void make();
  // Opening, in this order, with the rows between the last two: claims what lies outside of the
  // table's own extent; loads columns that are not dropped, former editions that rows are of, and
  // dropped columns.
  Status claim_schema();
  Status claim_added();
  Status load(bool dropped);
  Status load_numbers() { return numbers_ != nullptr ? numbers_->load() : Status(); }
  Status load_former_editions();
  Status load_dropped(std::size_t number);
  bool has_changes() const noexcept { return !changed_.empty(); }
  /// Bytes in the pool that describe the table: its own extent, its schema, and what columns that
  /// were added or changed have beside it.
  std::uint64_t description_bytes() const;
  bool has_later_layouts() const noexcept;

  /// The schema as it is in the pool.
  StoredSchema stored() const;
  /// Replaces the schema by `next`: durable, and valid for all, on return. Calls `take_over`
  /// between: `next` is durable then, and no one uses it yet. Fails with kInvalidArgument
  /// (complete_schema), kOutOfSpace; then nothing has changed.
  Status alter(StoredSchema next, FunctionRef<void()> take_over = [] {});
  /// Fails with kInvalidArgument when a row of the schema could get too large. Chunks have a bit
  /// for NULL in each column that could once be NULL.
  Status check_widest_row(TableSchema schema) const;
  /// See Database. `hint_tail_max`: set_hint_tail_max.
  Result<ColumnId> add_column(const ColumnSchema& wanted, std::uint32_t hint_tail_max);
  Status drop_column(ColumnId id);
  /// Also under the table's merge_mutex.
  Status change_type(ColumnId id, Type type);
  /// The column may have NULL from then on, or must not: no row that any snapshot sees has NULL.
  /// Fails as `alter` and begin_edition. Also under the table's merge_mutex.
  Status set_nullable(std::size_t number, bool nullable);
  /// Gives the column another edition, of this type, which holds values directly. Fails with kBusy
  /// (the column has the most editions that it may), kOutOfSpace.
  Status begin_edition(std::size_t number, Type type, bool admits_null = false);
  /// When no row has a former edition of a column any more, its cells are read like those of any
  /// other column. Called at opening, or when no reader of replaced chunks is left.
  void settle_editions() noexcept;
  /// Whether groups need what a former edition owns: they store all but long texts themselves.
  static bool needs_groups(const columns::Column& column) noexcept { return column.is_text(); }

  /// Begins to add a key: from then on writers maintain it. Its columns exist. `place` is free, or
  /// the next one.
  void begin_key(std::size_t place, const KeySchema& key);
  /// Completes the key: durable, found, and in no earlier index run. Also under the table's
  /// merge_mutex; `next` is a schema with the key. Fails like `alter`.
  Status finish_key(std::size_t place, StoredSchema next);

  /// The source of numbers, null if there never was one; and the column that it numbers, which may
  /// have been dropped.
  AutoIncrement* number_source() noexcept { return numbers_.get(); }
  std::size_t numbered_column() const noexcept { return numbered_; }

  /// Dropping the table: gives back the layouts of columns that were added.
  void release_added();

 private:
  void make_numbers();
  void make_editions();
  std::unique_ptr<columns::Column> make_added(std::uint64_t offset, const std::string& called,
                                              columns::Decoder& decoder);
  std::vector<pmem::Extent> added_extents() const;
  Status check_change(const StoredSchema& stored, std::size_t number, Type type) const;
  void take_names_over();

  TableData& data_;
  TableReferences& references_;
  std::vector<ChangedColumnLayout> changed_;
  /// A dropped column whose values no chunk and no group had at opening. A substitute that owns
  /// nothing stands in for it.
  struct Forgotten {
    std::unique_ptr<columns::ColumnLayout> layout;  // of the substitute
    std::unique_ptr<columns::Column> column;
  };
  std::vector<Forgotten> forgotten_;
  std::unique_ptr<AutoIncrement> numbers_;  // of the column numbered_; null: there is none
  std::size_t numbered_ = 0;
};

}  // namespace flugs::engine
