#pragma once

#include <string_view>

#include "flugs/database.h"
#include "flugs/ids.h"
#include "flugs/schema.h"
#include "flugs/status.h"

// SQLite takes names that differ only in the case of ASCII letters for the same one, and flugs does
// not. So a name is checked before it comes into the pool.

namespace flugs::sqlite {

/// No two columns have the same name for SQLite. Fails with: kInvalidArgument.
Status check_columns(const TableSchema& schema);
/// Whether a table may have a column of this name besides its others; `except` is one that gets the
/// name. Fails with: kInvalidArgument, kNotFound (the table).
Status check_new_column(const Database& database, TableId table, std::string_view name,
                        ColumnId except = ColumnId(0xFFFF));
/// Whether SQLite can show a table of this name beside the pool's others; `except` is one that gets
/// the name. Fails with: kInvalidArgument.
Status check_new_table(const Database& database, std::string_view name, TableId except = TableId());

}  // namespace flugs::sqlite
