#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/published.h"
#include "base/stable_array.h"
#include "columns/column/column_array.h"
#include "tables/catalog/catalog_layout.h"
#include "tables/catalog/schema_block.h"
#include "tables/data/row_constraints.h"
#include "tables/data/table_definition.h"
#include "tables/keys/index_runs.h"
#include "tables/keys/table_keys.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// The answer to a TableId that names no table, or none any longer.
inline Status no_table() { return Status(StatusCode::kNotFound, "no such table"); }

/// What a table consists of: its schema, columns, rows, keys and index runs, each with its place in
/// the pool. Here they only lie side by side. The classes beside this one act on them: each takes
/// the data it works on, and none knows the whole Table.
///
/// Thread-safety: as that of each member.
struct TableData final {
  /// Without columns and keys so far (TableColumns::make, make_keys).
  TableData(pmem::Pool& pool, TableLayout& layout, StoredSchema stored);

  TableId id() const noexcept { return TableId(layout.table_id); }
  /// As it is now. Older definitions stay readable as long as the table is there. A writer takes
  /// the definition once (TableDefinition): a second call may give it another one.
  const TableDefinition& definition() const noexcept { return definitions.get(); }
  const TableSchema& schema() const noexcept { return definition().schema(); }
  const std::string& name() const noexcept { return schema().name; }
  bool is_dropped() const noexcept { return dropped.load(std::memory_order_acquire); }
  /// Publishes another definition, with the pending constraint. Under the database's ddl_mutex_.
  void define(StoredSchema stored);
  /// Whether a column has texts: rows may then take more space in a group than in the delta.
  bool has_texts() const noexcept {
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (columns[i]->is_text()) return true;
    return false;
  }
  /// Columns that were dropped keep their numbers. No reader is shown what rows have of them.
  bool has_dropped_columns() const noexcept {
    return dropped_columns.load(std::memory_order_relaxed);
  }
  bool is_dropped_column(std::size_t column) const noexcept {
    return has_dropped_columns() && columns[column]->is_dropped();
  }
  bool has_column(ColumnId column) const noexcept {
    return column.value() < columns.size() && !is_dropped_column(column.value());
  }
  /// The answer to a ColumnId that names no column, or none any longer.
  Status no_column(ColumnId column) const { return no_column(definition(), column); }
  Status no_column(const TableDefinition& now, ColumnId column) const;
  /// The answer to a KeyId that names no key that can be looked up.
  Status no_key(std::size_t index) const;
  /// Fails with kInvalidArgument: one of the columns does not exist (any more).
  Status check_columns(std::span<const ColumnId> wanted) const {
    for (const ColumnId column : wanted)
      if (!has_column(column)) return no_column(column);
    return {};
  }
  /// Whether rows may have `width` values: one per column, or fewer from before columns were added.
  bool takes_width(const TableDefinition& now, std::size_t width) const noexcept {
    FLUGS_DCHECK(now.columns.size() <= columns.size());
    return width <= now.columns.size() && width >= layout.column_count;
  }
  /// Decodes a cell like the column, but faster.
  Value decode(const columns::RowLayout& cells, const std::byte* row,
               std::size_t column) const noexcept;
  void decode_all(const columns::RowLayout& cells, const std::byte* row,
                  std::span<Value> out) const noexcept;

  /// A handle of a row that exists, for users.
  Row make_row(std::uint32_t row) const noexcept {
    Row result;
    rows.view(row).put_into(result);
    result.table_ = this;
    result.id_ = RowId(row);
    return result;
  }

  /// Makes a handle for each key of the schema. The columns are there.
  void make_keys();
  /// Makes the handle of a key that has this place in the schema.
  std::unique_ptr<KeyIndex> make_key(std::size_t place, const KeySchema& key, KeyKinds kinds,
                                     KeyIndex::Origin origin);
  /// Opening, when the runs are loaded: tells each key whether it is looked for in them.
  void find_keys_in_runs() noexcept;
  /// Opening: adds all pages that transactions and queries read.
  void add_pages(pmem::WarmList& pages) const;

  pmem::Pool& pool;
  TableLayout& layout;
  Published<TableDefinition> definitions;
  PendingConstraint pending;  // of the definition from the next define on; under ddl_mutex_
  // One per column. A column with several editions has one per edition instead, and its entry here
  // says that the column must be asked.
  StableArray<columns::Decoder> decoders;
  columns::ColumnArray columns;
  RowStore rows;
  IndexRuns runs;
  TableKeys keys;
  RowConstraints constraints;
  /// Row positions of the delta that queries have read since the table was last merged, about.
  mutable std::atomic<std::uint64_t> delta_rows_read{0};
  std::atomic<bool> dropped_columns{false};
  std::atomic<bool> dropped{false};
};

/// The positions of a key's columns in the schema.
std::vector<std::uint16_t> positions_of(const TableSchema& schema, const KeySchema& key);
/// The hint index, in a table's own extent, of a column or, behind the columns, of a key; null when
/// the table's indexes are in DRAM.
columns::HintIndexLayout* hints_of(TableLayout& layout, std::size_t number) noexcept;

}  // namespace flugs::engine
