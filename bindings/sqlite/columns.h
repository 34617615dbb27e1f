#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flugs/condition.h"
#include "flugs/ids.h"
#include "flugs/schema.h"
#include "flugs/table.h"

namespace flugs::sqlite {

/// A column as SQL shows it.
struct Column {
  std::string name;
  ColumnId id;
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
  bool nullable = true;
  std::optional<Constant> default_value;

  /// Whether it is the same, but for its default.
  bool is_like(const Column& other) const noexcept;
};

/// A key; its columns are numbers of Columns.
struct Key {
  std::string name;
  KeyId id;
  std::vector<std::uint16_t> columns;
  bool unique = false;
  bool ordered = false;
  std::uint16_t hashed = 0;  ///< leading columns that the hash covers; 0: no hash
  bool operator==(const Key&) const = default;
};

/// A table of the pool as SQL shows it: without dropped columns and keys.
///
/// Thread-safety: a plain value type.
struct TableShape {
  TableId id;
  std::string name;
  std::vector<Column> columns;
  std::vector<Key> keys;
  bool has_primary_key = false;
  std::size_t width = 0;       ///< columns of the pool's table, dropped ones included
  bool gives_numbers = false;  ///< has an auto-increment column
  // A foreign key may give a row of the table another value, and so another version.
  bool moves_on_delete = false;     ///< when rows of another table, or of this one, are deleted
  bool moves_on_update = false;     ///< when they are updated
  std::uint64_t moved_columns = 0;  ///< that a foreign key may change; see column_bit

  bool moves() const noexcept { return moves_on_delete || moves_on_update; }

  static TableShape of(TableId id, const TableSchema& schema);
  /// Whether statements for this shape do what they should on a table that has the shape `now`:
  /// that may have more keys, but no more unique ones.
  bool still_fits(const TableShape& now) const;
  /// The CREATE TABLE that SQLite is told.
  std::string declaration() const;
};

/// The bit of a column in a set of columns. Those from the 64th on share one.
constexpr std::uint64_t column_bit(std::size_t column) noexcept {
  return std::uint64_t{1} << (column < 63 ? column : 63);
}

/// The type as SQL names it: "INTEGER", "DECIMAL(18,2)", ...
std::string sql_type(Type type, std::uint8_t scale);
/// "name", with each quote doubled.
std::string quoted(std::string_view name);

}  // namespace flugs::sqlite
