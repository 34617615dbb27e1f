#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/published.h"
#include "flugs/schema.h"
#include "flugs/status.h"
#include "tables/catalog/schema_bytes.h"

namespace flugs::engine {

class Table;

inline constexpr std::size_t kForeignKeysMax = 64;

/// A foreign key of an open database: rows of the child table refer to rows of the parent table,
/// which may be the same table.
///
/// Thread-safety: immutable, except for its names and its state: one thread at a time changes
/// these.
class ForeignKey final {
 public:
  ForeignKey(Table& its_child, Table& its_parent, std::vector<std::uint16_t> its_columns,
             std::size_t key_of_child, ForeignKeySchema schema, bool is_pending)
      : child(its_child),
        parent(its_parent),
        columns(std::move(its_columns)),
        child_key(key_of_child),
        parent_key(schema.referenced.index),
        schema_(std::move(schema)),
        pending_(is_pending) {}

  Table& child;                              ///< the table with the rows that refer
  Table& parent;                             ///< the table that they refer to
  const std::vector<std::uint16_t> columns;  ///< of the child, in the order of the parent's key
  const std::size_t child_key;               ///< begins with `columns`
  const std::size_t parent_key;              ///< unique

  /// Its schema with the current names; valid as long as the table.
  const ForeignKeySchema& schema() const noexcept { return schema_.get(); }
  void rename(ForeignKeySchema schema) { schema_.put(std::move(schema)); }
  /// Whether it is being added to a table with rows: writes obey it, but rows that are there may
  /// break it, and it may be taken back.
  bool is_pending() const noexcept { return pending_.load(std::memory_order_acquire); }
  void finish() noexcept { pending_.store(false, std::memory_order_release); }

 private:
  Published<ForeignKeySchema> schema_;
  std::atomic<bool> pending_;
};

/// A part of complete_schema: checks all that can be checked without the other table. Adds the key
/// that finds the rows that refer, unless the schema has such a key. Fails with kInvalidArgument.
Status complete_foreign_keys(TableSchema& schema);
/// Checks the name and the columns of a foreign key of the schema. Fails with kInvalidArgument.
Status check_foreign_key(const TableSchema& schema, const ForeignKeySchema& foreign);
/// The key that the foreign key gets when its table has none for it. Fails with kInvalidArgument (a
/// key has that name).
Result<KeySchema> new_key_for(const TableSchema& schema, const ForeignKeySchema& foreign);
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
