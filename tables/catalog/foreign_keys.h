#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flugs/schema.h"
#include "flugs/status.h"
#include "tables/catalog/schema_bytes.h"

namespace flugs::engine {

class Table;

inline constexpr std::size_t kForeignKeysMax = 64;

/// A foreign key of an open database: which rows of one table refer to which of another, or of the
/// same.
///
/// Thread-safety: immutable.
struct ForeignKey {
  std::size_t number;                  ///< among those of the table
  Table& child;                        ///< whose rows refer
  Table& parent;                       ///< to whose rows
  std::vector<std::uint16_t> columns;  ///< of the child, in the order of the parent's key
  std::size_t child_key;               ///< begins with `columns`
  std::size_t parent_key;              ///< unique

  /// As it is called now; valid as long as the table.
  const ForeignKeySchema& schema() const noexcept;
};

/// Parts of complete_schema: what can be said without the other table; adds the key by which rows
/// that refer are found, unless the schema has one. Fails with kInvalidArgument.
Status complete_foreign_keys(TableSchema& schema);
/// A key of the schema by which rows are found that have given values in these columns; the number
/// of keys when there is none.
std::size_t key_for(const TableSchema& schema, const std::vector<std::string>& columns) noexcept;
/// Whether the foreign key, its `referenced` known, fits the table that it refers to. Fails with
/// kInvalidArgument.
Status check_reference(const TableSchema& child, const ForeignKeySchema& foreign,
                       const TableSchema& parent);

// Parts of encode_schema and decode_schema; the latter fails with kCorrupt.
void encode_foreign_key(SchemaWriter& out, const TableSchema& schema,
                        const ForeignKeySchema& foreign);
Result<ForeignKeySchema> decode_foreign_key(SchemaReader& in, const TableSchema& schema);

}  // namespace flugs::engine
