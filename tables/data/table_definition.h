#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/exact_value.h"
#include "base/types.h"
#include "columns/column/column.h"
#include "flugs/schema.h"
#include "flugs/value.h"
#include "tables/catalog/schema_block.h"
#include "tables/data/check_constraint.h"

namespace flugs::engine {

/// What a definition demands of the values of one column. These entries are side by side, so that
/// checking a row does not read a schema per value.
struct DefinedColumn {
  explicit DefinedColumn(const ColumnSchema& column) noexcept
      : own(column.type, column.scale),
        type(column.type),
        scale(column.scale),
        is_text(is_text_type(column.type)),
        nullable(column.nullable),
        is_dropped(column.dropped) {}

  OwnKinds own;
  Type type;
  std::uint8_t scale;
  bool is_text;
  bool nullable;
  bool is_dropped;

  /// Whether the value passes as it is; columns::Column::check looks at other values.
  bool takes(const Value& value) const noexcept {
    if (__builtin_expect(is_dropped, 0)) return false;
    if (own.has(value)) return !is_text || value.as_string().size() <= columns::kTextBytesMax;
    return value.is_null() && nullable;
  }
};

/// A constraint that is being added to a table with rows: writes obey it already, but the schema in
/// the pool does not have it yet, because the rows that are there may break it.
struct PendingConstraint {
  std::optional<CheckSchema> check = {};
  std::optional<std::uint16_t> not_null = {};  ///< a column
};

/// The name, contents and constraints of a table at one moment. Altering the table replaces the
/// definition, so that a reader sees all of a change or nothing. It leaves out the list of columns'
/// changes, which only a thread that alters the table needs (TableColumns::stored): that list gets
/// an entry whenever a column is rewritten, and definitions stay as long as the table.
///
/// A statement that writes uses one definition to its end: the number of columns, which of them are
/// dropped, their types and defaults, and the checks are those of one moment. The table
/// (TableData::columns) never has fewer columns than the definition, and its present columns (of
/// another type or edition, perhaps) take any value that the definition allows.
///
/// Thread-safety: immutable.
struct TableDefinition {
  /// The schema must have passed complete_schema, also with the pending constraint.
  explicit TableDefinition(StoredSchema of, PendingConstraint being_added = {})
      : stored(std::move(of)), pending(std::move(being_added)) {
    FLUGS_CHECK(stored.changed_columns.empty());
    checks.reserve(stored.schema.checks.size() + 1);
    for (const CheckSchema& check : stored.schema.checks) checks.emplace_back(stored.schema, check);
    if (pending.check.has_value()) checks.emplace_back(stored.schema, *pending.check);
    columns.reserve(stored.schema.columns.size());
    for (const ColumnSchema& column : stored.schema.columns) columns.emplace_back(column);
    if (pending.not_null.has_value()) columns[*pending.not_null].nullable = false;
  }
  TableDefinition(const TableDefinition&) = delete;  // checks refer to the schema
  TableDefinition& operator=(const TableDefinition&) = delete;

  const TableSchema& schema() const noexcept { return stored.schema; }
  bool has_column(std::size_t column) const noexcept {
    return column < columns.size() && !columns[column].is_dropped;
  }

  const StoredSchema stored;  ///< without changed_columns
  const PendingConstraint pending;
  std::vector<CheckConstraint> checks;  ///< those of the schema, then the pending one
  std::vector<DefinedColumn> columns;   ///< all columns, with dropped ones
};

}  // namespace flugs::engine
