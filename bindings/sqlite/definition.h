#pragma once

#include <string>
#include <string_view>

#include "flugs/schema.h"
#include "flugs/status.h"

// What stands in the brackets of CREATE VIRTUAL TABLE ... USING flugs(...), and in the functions
// that change a table. SQLite has divided it at commas.

namespace flugs::sqlite {

struct Definition {
  TableSchema schema;
};

/// A table of this name with `count` columns, keys and foreign keys; with none of them, a table
/// that the pool has. Fails with: kInvalidArgument.
Result<Definition> read_definition(std::string_view name, int count, const char* const* words);
/// "note TEXT NOT NULL DEFAULT ''": a column without keys. Fails with: kInvalidArgument.
Result<ColumnSchema> read_column(std::string_view text);
/// "INDEX by_day(day, id)" or "CONSTRAINT by_name UNIQUE(name)". Fails with: kInvalidArgument.
Result<KeySchema> read_key(std::string_view text);

/// The CREATE VIRTUAL TABLE that makes a table like this one. Checks, which it cannot make, are in
/// a comment behind it.
std::string write_definition(const TableSchema& schema);

}  // namespace flugs::sqlite
