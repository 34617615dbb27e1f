#include "bench/support/table_layout.h"

#include <string>
#include <vector>

namespace flugs::bench {

std::string_view to_string(TableLayout layout) noexcept {
  switch (layout) {
    case TableLayout::kRows:
      return "rows";
    case TableLayout::kColumns:
      return "columns";
    case TableLayout::kGroups:
      return "groups";
  }
  return "unknown";
}

Status lay_out_table(Database& database, TableId table, TableLayout layout) {
  if (layout == TableLayout::kRows) return database.set_delta_layout(table, DeltaLayout::kRows);
  std::vector<std::vector<std::string>> groups;
  if (layout == TableLayout::kGroups) {
    const Result<TableSchema> schema = database.schema(table);
    if (!schema.ok()) return schema.status();
    std::vector<std::string>& all = groups.emplace_back();
    for (const ColumnSchema& column : schema->columns)
      if (!column.dropped) all.push_back(column.name);
  }
  return database.set_delta_layout(table, DeltaLayout::kColumns, groups);
}

Status lay_out_tables(Database& database, TableLayout layout) {
  for (const TableId table : database.tables())
    if (Status s = lay_out_table(database, table, layout); !s.ok()) return s;
  return {};
}

}  // namespace flugs::bench
