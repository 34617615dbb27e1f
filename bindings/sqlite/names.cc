#include "bindings/sqlite/names.h"

#include <algorithm>
#include <string>

#include "bindings/sqlite/sqlite_api.h"
#include "flugs/try.h"

namespace flugs::sqlite {

namespace {

/// Whether `a` begins with `b` for SQLite.
bool begins_with(std::string_view a, std::string_view b) noexcept {
  return a.size() >= b.size() &&
         sqlite3_strnicmp(a.data(), b.data(), static_cast<int>(b.size())) == 0;
}

/// Two names that the pool can tell apart, and SQLite cannot.
bool is_mixed_up(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && a != b && begins_with(a, b);
}

Status mixed_up(const char* what, std::string_view a, std::string_view b) {
  return Status(StatusCode::kInvalidArgument, "SQL takes the " + std::string(what) + " " +
                                                  std::string(a) + " and " + std::string(b) +
                                                  " for the same: their names differ only in case");
}

}  // namespace

Status check_columns(const TableSchema& schema) {
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (is_mixed_up(schema.columns[k].name, schema.columns[i].name))
        return mixed_up("columns", schema.columns[k].name, schema.columns[i].name);
  return {};
}

Status check_new_column(const Database& database, TableId table, std::string_view name,
                        ColumnId except) {
  FLUGS_ASSIGN(const TableSchema schema, database.schema(table));
  for (std::size_t i = 0; i < schema.columns.size(); ++i) {
    const ColumnSchema& column = schema.columns[i];
    if (column.dropped || ColumnId(static_cast<std::uint16_t>(i)) == except) continue;
    if (is_mixed_up(column.name, name)) return mixed_up("columns", column.name, name);
  }
  return {};
}

Status check_new_table(const Database& database, std::string_view name, TableId except) {
  constexpr std::string_view kStatistics = "flugs_statistics";
  if (begins_with(name, "sqlite_") ||
      (name.size() == kStatistics.size() && begins_with(name, kStatistics)))
    return Status(StatusCode::kInvalidArgument,
                  "no table may have the name " + std::string(name) + " of SQL's own");
  for (const TableId table : database.tables()) {
    if (table == except) continue;
    const Result<TableSchema> schema = database.schema(table);
    if (!schema.ok()) continue;  // dropped meanwhile
    if (is_mixed_up(schema->name, name)) return mixed_up("tables", schema->name, name);
  }
  return {};
}

}  // namespace flugs::sqlite
