#include "tables/data/table_data.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/check.h"

namespace flugs::engine {

namespace {

bool has_hints(const TableLayout& layout, const StoredSchema& stored, std::size_t place) noexcept {
  return layout.hints_offset != 0 && (stored.added_keys >> place & 1) == 0;
}

// A key with a hint index has only its ordered entries in runs.
std::vector<KeyShape> shapes_of(const TableLayout& layout, const StoredSchema& stored) {
  std::vector<KeyShape> shapes;
  shapes.reserve(stored.schema.keys.size());
  for (const KeySchema& key : stored.schema.keys) {
    const std::size_t place = shapes.size();
    shapes.push_back({key.unique && !has_hints(layout, stored, place), key.ordered, key.dropped,
                      (stored.added_keys >> place & 1) != 0});
  }
  return shapes;
}

}  // namespace

std::vector<std::uint16_t> positions_of(const TableSchema& schema, const KeySchema& key) {
  std::vector<std::uint16_t> positions;
  for (const std::string& name : key.columns)
    for (std::size_t i = 0; i < schema.columns.size(); ++i)
      if (schema.columns[i].name == name) positions.push_back(static_cast<std::uint16_t>(i));
  FLUGS_CHECK(positions.size() == key.columns.size());
  return positions;
}

columns::HintIndexLayout* hints_of(TableLayout& layout, std::size_t number) noexcept {
  if (layout.hints_offset == 0) return nullptr;
  FLUGS_DCHECK(number < layout.column_count + kKeysMax);
  auto* first = reinterpret_cast<std::byte*>(&layout) + layout.hints_offset;
  return reinterpret_cast<columns::HintIndexLayout*>(first) + number;
}

TableData::TableData(pmem::Pool& pool_of_it, TableLayout& layout_of_it, StoredSchema stored)
    : pool(pool_of_it),
      layout(layout_of_it),
      definitions(std::make_unique<const TableDefinition>(std::move(stored))),
      decoders(columns::ColumnArray::kColumnsMax),
      rows(pool, layout, columns, fmt::format("table {}, rows", name())),
      runs(pool, layout, rows, shapes_of(layout, definition().stored),
           definition().stored.key_additions, fmt::format("table {}, index runs", name())) {}

void TableData::make_keys() {
  const StoredSchema& stored = definition().stored;
  const std::vector<KeySchema>& wanted = stored.schema.keys;
  FLUGS_CHECK(columns.size() == stored.schema.columns.size());
  FLUGS_CHECK(wanted.size() <= kKeysMax && keys.empty());
  keys.set_size(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].dropped) continue;
    const bool is_hinted = wanted[i].unique && has_hints(layout, stored, i);
    keys.add(i, std::make_unique<KeyIndex>(
                    pool, is_hinted ? hints_of(layout, layout.column_count + i) : nullptr, name(),
                    rows, runs, i, columns, wanted[i], positions_of(schema(), wanted[i])));
  }
}

void TableData::find_keys_in_runs() noexcept {
  for (const std::size_t place : KeyPlaces(keys.kept()))
    keys[place]->set_uses_runs(runs.serve_key(place));
}

void TableData::add_pages(pmem::WarmList& pages) const {
  for (const KeyIndex* key : keys) key->add_pages(pages);
  runs.add_pages(pages);
  columns.for_each_used([&](const columns::Column& column) { column.add_pages(pages); });
  rows.add_pages(pages);
}

Status TableData::no_column(const TableDefinition& now, ColumnId column) const {
  if (column.value() < now.columns.size())
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("table {}: column {} was dropped", name(), column.value()));
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("table {}: no column {}, it has {}", name(), column.value(), now.columns.size()));
}

}  // namespace flugs::engine
