#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flugs/condition.h"
#include "flugs/ids.h"
#include "flugs/value.h"

namespace flugs {

/// How the rows of the delta store a column's values.
enum class Encoding : std::uint8_t {
  /// The engine chooses. Direct for a column that alone forms a unique key, because every value is
  /// new then, unless the column is nullable or of bytes. Dictionary for everything else, as long
  /// as it pays: a column of numbers turns to direct when its dictionary takes more space than it
  /// saves in the rows, or gets too large for the caches
  /// (docs/decisions/0027-dictionaries-that-do-not-pay.md).
  kAuto = 0,
  /// The row holds a ValueID; the column's dictionary holds each value once (SOFORT, section 2).
  /// This does not depend on the number of values, but a merge that finds most of them in no row
  /// ends it (decision 0026).
  kDictionary = 1,
  /// The row holds the value itself. For columns in which nearly every value is new: an update
  /// then adds nothing to a dictionary.
  kDirect = 2,
};
static_assert(Encoding() == Encoding::kAuto);

/// Where the cells of a table's rows lie in the delta. Both ways have the same protocols, keys and
/// merges (docs/decisions/0065-columns-in-the-delta.md).
enum class DeltaLayout : std::uint8_t {
  /// Side by side in the row. Reading or writing a row touches few cache lines.
  kRows = 0,
  /// Apart: each column has its own arrays, and so have the time-stamps (SOFORT, section 2 and
  /// figure 1: append-only columns, CTS and DTS arrays). A query reads only the columns that it
  /// needs; reading or writing a row touches a cache line for each of its columns. Columns of a
  /// group (TableSchema::column_groups) lie side by side.
  kColumns = 1,
};
static_assert(DeltaLayout() == DeltaLayout::kRows);
/// "rows" or "columns".
constexpr std::string_view to_string(DeltaLayout layout) noexcept {
  return layout == DeltaLayout::kColumns ? "columns" : "rows";
}

/// One column. Names are 1 to 63 bytes, without a zero byte, and unique within the table.
struct ColumnSchema {
  std::string name = {};
  Type type = Type::kInt64;
  bool nullable = true;
  Encoding encoding = Encoding::kAuto;
  /// For an existing table: `encoding` was kAuto and now shows the engine's choice so far.
  bool chooses_encoding = false;
  /// Decimal digits after the point, 0 to 18; for kDecimal only.
  std::uint8_t scale = 0;
  /// A hint for the width of codes; 0: unknown. It is no limit: more values make rows wider.
  std::uint32_t expected_distinct = 0;
  /// The value that an insert stores if it is given none for the column; without a default NULL. It
  /// has the column's type, or stands for it exactly: a smaller integer, an integer or decimal for
  /// a decimal, a date for a timestamp. Texts have up to 4096 bytes.
  std::optional<Constant> default_value = {};
  /// Rows inserted without a value for the column, or with NULL, get numbers, from 1 on. The column
  /// must be int32 or int64, becomes NOT NULL, and is the only such column of its table. No number
  /// is given twice. Numbers have gaps and do not follow the order of commits: each transaction
  /// slot takes up to 1024 at a time. Numbers that a slot has not used when the database is closed
  /// or crashes are never given, and neither are those of an aborted transaction. A number that a
  /// row brings with it does not move the counter (as in PostgreSQL): see Database::skip_numbers.
  /// Only a key makes numbers unique.
  bool auto_increment = false;
  /// The column was dropped (Database::drop_column). It has no name, and a value given for it must
  /// be NULL. It keeps its place, so that the ColumnIds of other columns do not change.
  bool dropped = false;
};

/// A key. Every unique key finds its row by hash in about one cache miss; an ordered key can also
/// be walked by prefix and range. A key that is not unique is always ordered.
///
/// A unique key admits any number of rows in which one of its columns is NULL (the SQL rule);
/// columns of a primary key must not be nullable.
struct KeySchema {
  std::string name = {};                  ///< 1 to 63 bytes, unique within the table
  std::vector<std::string> columns = {};  ///< 1 to 16, in key order
  bool unique = false;
  /// NULL first, numbers by size with NaN last, strings and bytes byte by byte.
  bool ordered = false;
  /// Number of leading columns that the hash covers; 0: all of them. With fewer than all, an
  /// equality look-up on just these columns is a hash look-up, too; meant for prefixes with few
  /// rows each.
  std::uint8_t hashed_columns = 0;
  /// The key was dropped (Database::drop_key). It keeps its place, without name and columns, so
  /// that the KeyIds of later keys do not change. A new key may get the place.
  bool dropped = false;
};

/// A condition that every row must meet. It is checked when a row is inserted and when one of the
/// columns changes. Constants are as for ColumnSchema::default_value. Columns that are compared
/// must have one type; integers of both sizes compare. At most 64 comparisons and combinations of
/// them, and 1024 constants in all.
struct CheckSchema {
  std::string name = {};  ///< 1 to 63 bytes, unique among the table's checks
  Condition condition = {};
};

/// What happens to referring rows when the row that they refer to is deleted or its key changes.
/// The order in which a statement reaches rows is not defined. It matters when the statement
/// reaches a row by two foreign keys, and the change for one hides the row from the other. A
/// statement that would give a column of a row two values in turn fails with kConstraintViolated.
/// The numeric values are part of the pool format.
enum class ReferenceAction : std::uint8_t {
  kRestrict = 0,  ///< nothing; the statement is refused if such rows are left at its end
  kCascade = 1,   ///< they are deleted, too, or get the new values
  kSetNull = 2,   ///< their referring columns become NULL
};
/// "restrict", "cascade" or "set null".
std::string_view to_string(ReferenceAction action) noexcept;
static_assert(ReferenceAction() == ReferenceAction::kRestrict);

/// Rows refer to a row of another table, or of the same one, by its unique key: a row with the
/// values of `columns` must exist, unless one of them is NULL. The table finds its referring rows
/// by a key of its own that begins with the columns (ordered, or not unique, or hashed by no more
/// than these). A table without such a key gets an ordered key with the foreign key's name, which
/// counts like any other.
///
/// Each statement obeys foreign keys with all its effects: a statement that fails has changed
/// nothing. Commit checks once more that no transaction deletes a row to which another concurrent
/// one lets a row refer. The later one of such a pair fails with kConflict, at every level of
/// isolation.
struct ForeignKeySchema {
  std::string name = {};                  ///< 1 to 63 bytes, unique among the table's foreign keys
  std::vector<std::string> columns = {};  ///< 1 to 16, with the types and scales of the other key's
  std::string table = {};                 ///< an existing table, or the table itself
  std::string key = "primary";            ///< a unique key of that table
  ReferenceAction on_delete = ReferenceAction::kRestrict;
  ReferenceAction on_update = ReferenceAction::kRestrict;
  KeyId referenced = {};  ///< the ids of the names; set by create_table and add_foreign_key
};

/// What a column may say besides its name and type; see ColumnSchema.
///     schema.column("id", Type::kInt64, {.not_null = true, .auto_increment = true})
struct ColumnOptions {
  bool not_null = false;
  bool auto_increment = false;
  std::uint8_t scale = 0;
  std::optional<Constant> default_value = {};
  Encoding encoding = Encoding::kAuto;
  std::uint32_t expected_distinct = 0;
};

/// What a key may say besides its name and columns; see KeySchema.
///     schema.unique_key("sku", {"sku"}, {.ordered = true})
struct KeyOptions {
  bool ordered = false;
  std::uint8_t hashed_columns = 0;
};

/// A table: its columns, its keys and the conditions that its rows must meet. `keys[0]` is the
/// primary key when `has_primary_key`. A row has at most 4096 bytes at its widest: a dictionary
/// code takes 4 bytes, a direct number 8, a direct string 16, and the row itself 16.
/// Database::create_table checks everything; the functions here never fail.
///
/// Thread-safety: a plain value type.
struct TableSchema {
  std::string name;                   ///< 1 to 63 bytes, unique within the database
  std::vector<ColumnSchema> columns;  ///< 1 to 1024, including dropped ones
  bool has_primary_key = false;
  DeltaLayout delta_layout = DeltaLayout::kRows;
  /// With DeltaLayout::kColumns: names of columns whose cells lie side by side in the delta, for
  /// columns that are read or written together. Each column is in one group at most, and apart if
  /// it is in none. At most 255 groups.
  std::vector<std::vector<std::string>> column_groups = {};
  std::vector<KeySchema> keys;                 ///< at most 16
  std::vector<CheckSchema> checks;             ///< at most 64
  std::vector<ForeignKeySchema> foreign_keys;  ///< at most 64
  /// The first of the calls below that came before the column or key that it applies to; empty:
  /// none. create_table refuses such a schema.
  std::string misplaced_call;

  TableSchema() = default;
  explicit TableSchema(std::string table_name) : name(std::move(table_name)) {}

  /// Adds a column; returns *this so that a schema reads as one sentence.
  TableSchema& column(std::string column_name, Type type) {
    ColumnSchema c;
    c.name = std::move(column_name);
    c.type = type;
    columns.push_back(std::move(c));
    return *this;
  }
  TableSchema& column(std::string column_name, Type type, ColumnOptions options) {
    column(std::move(column_name), type);
    ColumnSchema& c = columns.back();
    c.nullable = !options.not_null;
    c.auto_increment = options.auto_increment;
    c.scale = options.scale;
    c.default_value = std::move(options.default_value);
    c.encoding = options.encoding;
    c.expected_distinct = options.expected_distinct;
    return *this;
  }
  // The next seven say the same in other words, of the column added last. Without a column,
  // create_table refuses the schema.
  TableSchema& not_null() {
    if (columns.empty()) return misplace("not_null");
    columns.back().nullable = false;
    return *this;
  }
  TableSchema& direct() {
    if (columns.empty()) return misplace("direct");
    columns.back().encoding = Encoding::kDirect;
    return *this;
  }
  TableSchema& dictionary() {
    if (columns.empty()) return misplace("dictionary");
    columns.back().encoding = Encoding::kDictionary;
    return *this;
  }
  TableSchema& scale(std::uint8_t digits) {
    if (columns.empty()) return misplace("scale");
    columns.back().scale = digits;
    return *this;
  }
  TableSchema& with_default(Constant value) {
    if (columns.empty()) return misplace("with_default");
    columns.back().default_value = std::move(value);
    return *this;
  }
  TableSchema& auto_increment() {
    if (columns.empty()) return misplace("auto_increment");
    columns.back().auto_increment = true;
    return *this;
  }
  TableSchema& expect_distinct(std::uint32_t values) {
    if (columns.empty()) return misplace("expect_distinct");
    columns.back().expected_distinct = values;
    return *this;
  }

  /// The primary key: unique, its columns become NOT NULL. At most one per table; declared before
  /// other keys.
  TableSchema& primary_key(std::vector<std::string> column_names, KeyOptions options = {}) {
    for (const std::string& name_of_key : column_names)
      for (ColumnSchema& c : columns)
        if (c.name == name_of_key) c.nullable = false;
    KeySchema k;
    k.name = "primary";
    k.columns = std::move(column_names);
    k.unique = true;
    k.ordered = options.ordered;
    k.hashed_columns = options.hashed_columns;
    keys.insert(keys.begin(), std::move(k));
    has_primary_key = true;
    return *this;
  }
  TableSchema& unique_key(std::string key_name, std::vector<std::string> column_names,
                          KeyOptions options = {}) {
    KeySchema k;
    k.name = std::move(key_name);
    k.columns = std::move(column_names);
    k.unique = true;
    k.ordered = options.ordered;
    k.hashed_columns = options.hashed_columns;
    keys.push_back(std::move(k));
    return *this;
  }
  /// Not unique, and ordered.
  TableSchema& key(std::string key_name, std::vector<std::string> column_names) {
    KeySchema k;
    k.name = std::move(key_name);
    k.columns = std::move(column_names);
    k.ordered = true;
    keys.push_back(std::move(k));
    return *this;
  }
  TableSchema& check(std::string check_name, Condition condition) {
    checks.push_back({std::move(check_name), std::move(condition)});
    return *this;
  }
  /// Refers to the primary key of `table`; to refer to another key, set ForeignKeySchema::key.
  TableSchema& foreign_key(std::string foreign_name, std::vector<std::string> column_names,
                           std::string table,
                           ReferenceAction on_delete = ReferenceAction::kRestrict,
                           ReferenceAction on_update = ReferenceAction::kRestrict) {
    ForeignKeySchema f;
    f.name = std::move(foreign_name);
    f.columns = std::move(column_names);
    f.table = std::move(table);
    f.on_delete = on_delete;
    f.on_update = on_update;
    foreign_keys.push_back(std::move(f));
    return *this;
  }
  /// Makes the key added last (or the primary key, if there is no other) ordered as well as hashed.
  TableSchema& ordered() {
    if (keys.empty()) return misplace("ordered");
    keys.back().ordered = true;
    return *this;
  }
  /// Sets `delta_layout` to kColumns; Database::set_delta_layout changes it later.
  TableSchema& in_columns() { return in_column_groups({}); }
  /// The same, and sets `column_groups`.
  TableSchema& in_column_groups(std::vector<std::vector<std::string>> groups) {
    delta_layout = DeltaLayout::kColumns;
    column_groups = std::move(groups);
    return *this;
  }
  /// Hashes only the first `count` columns of the key added last.
  TableSchema& hash_prefix(std::uint8_t count) {
    if (keys.empty()) return misplace("hash_prefix");
    keys.back().hashed_columns = count;
    return *this;
  }

 private:
  TableSchema& misplace(const char* call) {
    if (misplaced_call.empty()) misplaced_call = call;
    return *this;
  }
};
static_assert(std::is_nothrow_move_constructible_v<TableSchema>);

}  // namespace flugs
