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

/// A foreign key of an open database: rows of the child table refer to rows of the parent table,
/// which may be the same table.
///
/// Thread-safety: immutable.
struct ForeignKey {
  std::size_t number;                  ///< among those of the table
  Table& child;                        ///< the table with the rows that refer
  Table& parent;                       ///< the table that they refer to
  std::vector<std::uint16_t> columns;  ///< of the child, in the order of the parent's key
  std::size_t child_key;               ///< begins with `columns`
  std::size_t parent_key;              ///< unique

  /// Its schema with the current names; valid as long as the table.
  const ForeignKeySchema& schema() const noexcept;
};

/// A part of complete_schema: checks all that can be checked without the other table. Adds the key
/// that finds the rows that refer, unless the schema has such a key. Fails with kInvalidArgument.
Status complete_foreign_keys(TableSchema& schema);
/// A key of the schema that finds the rows with given values in these columns; the number of keys
/// if there is none.
std::size_t key_for(const TableSchema& schema, const std::vector<std::string>& columns) noexcept;
/// Checks that the foreign key, its `referenced` known, fits the table that it refers to. Fails
/// with kInvalidArgument.
Status check_reference(const TableSchema& child, const ForeignKeySchema& foreign,
                       const TableSchema& parent);

// Parts of encode_schema and decode_schema; the latter fails with kCorrupt.
void encode_foreign_key(SchemaWriter& out, const TableSchema& schema,
                        const ForeignKeySchema& foreign);
Result<ForeignKeySchema> decode_foreign_key(SchemaReader& in, const TableSchema& schema);

}  // namespace flugs::engine
