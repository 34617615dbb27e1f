#include "tools/support/delta_layout.h"

#include <array>
#include <string>
#include <vector>

namespace flugs::tools {

namespace {

constexpr std::array kLayouts = {TableLayout::kRows, TableLayout::kColumns, TableLayout::kGroups};

}  // namespace

std::string_view to_string(TableLayout layout) noexcept {
  switch (layout) {
    case TableLayout::kRows:
      return "rows";
    case TableLayout::kColumns:
      return "columns";
    default:
      return "groups";
  }
}

void add_layout_option(CLI::App& command, TableLayout& layout) {
  std::vector<std::string> words;
  for (const TableLayout known : kLayouts) words.emplace_back(to_string(known));
  command
      .add_option_function<std::string>(
          "--layout",
          [&layout](const std::string& word) {
            for (const TableLayout known : kLayouts)
              if (to_string(known) == word) layout = known;
          },
          "Layout of tables in the delta: the cells of a row side by side, each column apart, or "
          "all columns of a table in one group, apart from the time-stamps")
      ->check(CLI::IsMember(words))
      ->default_str(std::string(to_string(layout)));
}

Status lay_out_table(Database& database, TableId table, TableLayout layout) {
  if (layout == TableLayout::kRows) return database.set_delta_layout(table, DeltaLayout::kRows);
  if (layout == TableLayout::kColumns)
    return database.set_delta_layout(table, DeltaLayout::kColumns);
  const Result<TableSchema> schema = database.schema(table);
  if (!schema.ok()) return schema.status();
  std::vector<std::string> all;
  for (const ColumnSchema& column : schema->columns)
    if (!column.dropped) all.push_back(column.name);
  return database.set_delta_layout(table, DeltaLayout::kColumns, {all});
}

Status lay_out_tables(Database& database, TableLayout layout) {
  for (const TableId table : database.tables())
    if (Status s = lay_out_table(database, table, layout); !s.ok()) return s;
  return {};
}

}  // namespace flugs::tools
