#pragma once

#include <utility>
#include <vector>

#include "engine/check_constraint.h"
#include "engine/schema_block.h"

namespace flugs::engine {

/// What a table is called, has and demands, as it stands: another takes its place when the table is
/// altered, so that who reads it sees all of a change or nothing. But for the list of columns'
/// changes, which only who alters the table asks for (Table::stored), and which gets another entry
/// whenever a column begins anew: definitions stay as long as the table.
///
/// Thread-safety: immutable.
struct TableDefinition {
  /// Of a schema that complete_schema has passed.
  explicit TableDefinition(StoredSchema of) : stored(std::move(of)) {
    checks.reserve(stored.schema.checks.size());
    for (const CheckSchema& check : stored.schema.checks) checks.emplace_back(stored.schema, check);
  }
  TableDefinition(const TableDefinition&) = delete;  // checks refer to the schema
  TableDefinition& operator=(const TableDefinition&) = delete;

  const TableSchema& schema() const noexcept { return stored.schema; }

  const StoredSchema stored;  ///< without changed_columns
  std::vector<CheckConstraint> checks;
};

}  // namespace flugs::engine
