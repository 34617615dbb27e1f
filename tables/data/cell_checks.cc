#include "tables/data/cell_checks.h"

#include <fmt/format.h>

#include <string>

#include "base/check.h"
#include "tables/data/table_data.h"

namespace flugs::engine {

namespace {

Status implausible_cell(const TableData& data, std::uint32_t row, std::size_t column) {
  const columns::Column* edition =
      data.columns[column]->at_edition(data.rows.layout(row).edition(column));
  const std::uint64_t found = data.rows.layout(row).load_cell(data.rows.address(row), column).low;
  const std::uint32_t count = edition == nullptr ? 0 : edition->dictionary().count();
  const std::string expected =
      edition != nullptr && edition->is_dictionary() && found < count
          ? "a ValueID with an intact entry"
          : fmt::format("a ValueID below {} or text inside the pool", count);
  return Status(
      StatusCode::kCorrupt,
      fmt::format("{}: table {}, row {}, column {}: expected {}, found {}", data.pool.path(),
                  data.name(), row, data.columns[column]->name(), expected, found));
}

}  // namespace

Status check_cells(const TableData& data, std::uint32_t first,
                   std::span<const std::byte* const> rows) {
  FLUGS_DCHECK(data.rows.group_with(first) == nullptr);
  const columns::RowLayout& layout = data.rows.layout(first);
  for (std::size_t i = 0; i < data.columns.size(); ++i) {
    const std::size_t wrong = data.columns[i]->first_implausible(layout, rows, i);
    if (wrong == rows.size()) continue;
    std::uint32_t row = first;
    while (data.rows.address(row) != rows[wrong]) ++row;
    return implausible_cell(data, row, i);
  }
  return {};
}

Status check_cells(const TableData& data, std::uint32_t row) {
  if (data.rows.view(row).is_in_group()) return {};  // checked when the group was loaded
  const columns::RowLayout& layout = data.rows.layout(row);
  const std::byte* cells = data.rows.address(row);
  for (std::size_t i = 0; i < data.columns.size(); ++i)
    if (!data.columns[i]->is_plausible(layout, cells, i) ||
        !data.columns[i]->has_whole_entry(layout, cells, i))
      return implausible_cell(data, row, i);
  return {};
}

}  // namespace flugs::engine
