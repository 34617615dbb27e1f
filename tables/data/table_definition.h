#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "base/types.h"
#include "columns/column/column.h"
#include "flugs/schema.h"
#include "flugs/value.h"
#include "tables/catalog/schema_block.h"
#include "tables/data/check_constraint.h"

namespace flugs::engine {

/// What a definition asks of the values of one column. Those of all columns lie side by side, so
/// that checking a row does not read a schema per value.
struct DefinedColumn {
  Type type = Type::kInt64;
  bool nullable = true;
  bool is_dropped = false;

  /// Whether the value needs no closer look: columns::Column::check says what is wrong with others.
  bool takes(const Value& value) const noexcept {
    if (is_dropped) return false;
    if (value.is_null()) return nullable;
    return value.type() == type &&
           (!is_text_type(type) || value.as_string().size() <= columns::kTextBytesMax);
  }
};

/// What a table is called, has and demands, as it stands: another takes its place when the table is
/// altered, so that who reads it sees all of a change or nothing. But for the list of columns'
/// changes, which only who alters the table asks for (TableColumns::stored), and which gets another
/// entry whenever a column begins anew: definitions stay as long as the table.
///
/// A statement that writes takes one definition and keeps to it: the number of columns, which of
/// them are dropped, their types and defaults, and the checks are those of one moment. The table's
/// columns (TableData::columns) are never fewer than the definition has, and what they hold by then
/// (another type, another edition) takes any value that the definition allows.
///
/// Thread-safety: immutable.
struct TableDefinition {
  /// Of a schema that complete_schema has passed.
  explicit TableDefinition(StoredSchema of) : stored(std::move(of)) {
    checks.reserve(stored.schema.checks.size());
    for (const CheckSchema& check : stored.schema.checks) checks.emplace_back(stored.schema, check);
    columns.reserve(stored.schema.columns.size());
    for (const ColumnSchema& column : stored.schema.columns)
      columns.push_back({column.type, column.nullable, column.dropped});
  }
  TableDefinition(const TableDefinition&) = delete;  // checks refer to the schema
  TableDefinition& operator=(const TableDefinition&) = delete;

  const TableSchema& schema() const noexcept { return stored.schema; }
  bool has_column(std::size_t column) const noexcept {
    return column < columns.size() && !columns[column].is_dropped;
  }

  const StoredSchema stored;  ///< without changed_columns
  std::vector<CheckConstraint> checks;
  std::vector<DefinedColumn> columns;  ///< all that there are, dropped ones included
};

}  // namespace flugs::engine
