#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bindings/sqlite/columns.h"
#include "bindings/sqlite/sqlite_api.h"
#include "bindings/sqlite/texts.h"
#include "flugs/status.h"
#include "flugs/value.h"

// Values of SQL and of columns. A column takes and refuses the same values as one of a STRICT table
// of SQLite; docs/sql.md has the forms of the types that SQLite lacks.

namespace flugs::sqlite {

/// A value to store in a column. Texts are views of `from`, which may change its form, as by an
/// affinity. Fails with: kConstraintViolated (the value does not fit the column's type).
Status take(const std::string& table, const Column& column, sqlite3_value* from, Value& to);

/// Gives a value of a column as the result of a call.
void give(sqlite3_context* context, Texts& texts, const Column& column, const Value& value);

/// A comparison of a column with a value.
enum class Compare : std::uint8_t { kEq, kNe, kLt, kLe, kGt, kGe, kIs };

/// What a comparison of SQL means for the column.
enum class Meaning : std::uint8_t {
  kExact,    ///< the same as the comparison given
  kNothing,  ///< no row has such a value
  kNotNull,  ///< every value but NULL
  kUnclear,  ///< only SQLite can tell
};
struct Comparison {
  Meaning meaning = Meaning::kUnclear;
  Compare op = Compare::kEq;
  Value value;
};
/// What `column op value` means. Text is a view of `value`, which stays as it is. With a text that
/// is no literal, a range may mean more texts than SQLite takes: SQLite must look again.
Comparison compare(const Column& column, Compare op, sqlite3_value* value, bool is_literal = false);

/// Whether a comparison with the column is never unclear, whatever the value.
inline bool is_always_clear(Type type) noexcept {
  return type == Type::kInt32 || type == Type::kInt64;
}

}  // namespace flugs::sqlite
