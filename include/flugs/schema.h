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

/// How a column's values lie in the rows of the delta.
enum class Encoding : std::uint8_t {
  /// Direct for a column that is a unique key by itself (so that every value is new anyway) unless
  /// it is of bytes or nullable; dictionary for everything else, as long as it pays: a column of
  /// numbers turns to direct when its dictionary takes more than it saves in the rows, or gets too
  /// large for the caches (docs/decisions/0027-dictionaries-that-do-not-pay.md).
  kAuto = 0,
  /// The row holds a ValueID; the column's dictionary holds each value once (SOFORT, section 2).
  /// However many there are, unless a merge finds that most are no row's (decision 0026).
  kDictionary = 1,
  /// The row holds the value itself. For columns in which nearly every value is new: an update
  /// then adds nothing to a dictionary.
  kDirect = 2,
};

/// One column. Names are 1 to 63 bytes, without a zero byte, and unique within the table.
struct ColumnSchema {
  std::string name = {};
  Type type = Type::kInt64;
  bool nullable = true;
  Encoding encoding = Encoding::kAuto;
  /// Of a table that is there: `encoding` was kAuto, and is what the engine has chosen so far.
  bool chooses_encoding = false;
  /// Decimal digits after the point, 0 to 18; for kDecimal only.
  std::uint8_t scale = 0;
  /// A hint for the width of codes; 0: unknown. Never a limit: more values make rows wider.
  std::uint32_t expected_distinct = 0;
  /// What Transaction::insert stores that is given no value for the column; without one NULL. A
  /// value of the column's type, or one that stands for it exactly: a smaller integer, an integer
  /// or decimal for a decimal, a date for a timestamp. Texts have up to 4096 bytes.
  std::optional<Constant> default_value = {};
  /// Rows that are inserted without a value for the column, or with NULL, get a number of their
  /// own, from 1 on: an int32 or int64 column, which becomes NOT NULL, one in a table. Numbers have
  /// gaps and are not in the order of commits: each transaction slot takes up to 1024 at a time,
  /// and what it has not used when the database is closed or crashes, or an aborted transaction has
  /// used, is never given. No number is given twice. One that a row brings with it does not move
  /// the counter (as in PostgreSQL): see Database::skip_numbers. Whether numbers are unique is for
  /// a key to say.
  bool auto_increment = false;
  /// The column was dropped (Database::drop_column): it has no name, and what is given for it must
  /// be NULL. It keeps its place, so that the ColumnIds of the others stay what they are.
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
  /// Leading columns that the hash covers; 0: all of them. With fewer than all, an equality
  /// look-up on just these columns is a hash look-up too; meant for prefixes with few rows each.
  std::uint8_t hashed_columns = 0;
  /// The place of a key that was dropped (Database::drop_key): nothing but a place, so that the
  /// KeyIds of those behind it stay what they are. No name, no columns. A new key may get it.
  bool dropped = false;
};

/// What every row must fulfil, looked at when it is inserted and when one of the columns changes.
/// Constants as for ColumnSchema::default_value; columns that are compared have one type, integers
/// may be of either size. At most 64 comparisons and combinations of them, 1024 constants in all.
struct CheckSchema {
  std::string name = {};  ///< 1 to 63 bytes, unique among the table's checks
  Condition condition = {};
};

/// What becomes of rows that refer to one that is deleted, or whose key changes. In which order a
/// statement comes to rows is not promised: it matters when it comes to a row from two others, and
/// a change hides the row from the other foreign key. The numeric values are part of the pool
/// format.
enum class ReferenceAction : std::uint8_t {
  kRestrict = 0,  ///< nothing: refused, if there are such at the end of the statement
  kCascade = 1,   ///< they are deleted, too, or refer to the new values
  kSetNull = 2,   ///< their columns become NULL
};

/// Rows refer to a row of another table, or of the same, by its unique key: what their columns name
/// is there, unless one of them is NULL. Rows that refer are found by a key of their own that
/// begins with the columns (ordered, or not unique, or hashed by no more than these); a table
/// without one gets an ordered key of the foreign key's name, which counts as any other.
///
/// Statements see to it with all that follows from them: one that fails has changed nothing. That
/// nobody deletes a row to which another transaction just lets one refer, commit looks at once
/// more: of two such the later one fails with kConflict, at every level of isolation.
struct ForeignKeySchema {
  std::string name = {};                  ///< 1 to 63 bytes, unique among the table's foreign keys
  std::vector<std::string> columns = {};  ///< 1 to 16, with the types and scales of the other key's
  std::string table = {};                 ///< there already, or the table itself
  std::string key = "primary";            ///< a unique key of it
  ReferenceAction on_delete = ReferenceAction::kRestrict;
  ReferenceAction on_update = ReferenceAction::kRestrict;
  KeyId referenced = {};  ///< what the names mean; filled in by Database::create_table
};

/// A table: columns, keys and what must hold for its rows. `keys[0]` is the primary key when
/// `has_primary_key`. A row at its widest (a dictionary code 4 bytes, a direct number 8, a direct
/// string 16, and 16 bytes of its own) has at most 4096 bytes. Database::create_table checks
/// everything; nothing here fails.
///
/// Thread-safety: a plain value type.
struct TableSchema {
  std::string name;                   ///< 1 to 63 bytes, unique within the database
  std::vector<ColumnSchema> columns;  ///< 1 to 1024, with those that were dropped
  bool has_primary_key = false;
  std::vector<KeySchema> keys;                 ///< at most 16
  std::vector<CheckSchema> checks;             ///< at most 64
  std::vector<ForeignKeySchema> foreign_keys;  ///< at most 64
  /// The first of the calls below that spoke of a column or key before there was one; empty: none.
  /// create_table refuses such a schema.
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
  // The following seven speak of the column added last. Without one, create_table is refused.
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

  /// The primary key: unique, its columns become NOT NULL. At most one, declared before other keys.
  TableSchema& primary_key(std::vector<std::string> column_names) {
    for (const std::string& name_of_key : column_names)
      for (ColumnSchema& c : columns)
        if (c.name == name_of_key) c.nullable = false;
    KeySchema k;
    k.name = "primary";
    k.columns = std::move(column_names);
    k.unique = true;
    keys.insert(keys.begin(), std::move(k));
    has_primary_key = true;
    return *this;
  }
  TableSchema& unique_key(std::string key_name, std::vector<std::string> column_names) {
    KeySchema k;
    k.name = std::move(key_name);
    k.columns = std::move(column_names);
    k.unique = true;
    keys.push_back(std::move(k));
    return *this;
  }
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
  /// To the primary key of `table`; for another key of it, set ForeignKeySchema::key.
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
  /// Makes the key added last (or the primary key, if no other was) ordered as well as hashed.
  TableSchema& ordered() {
    if (keys.empty()) return misplace("ordered");
    keys.back().ordered = true;
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

}  // namespace flugs
