#include "tables/data/table_data.h"

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "base/check.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

bool is_added(const StoredSchema& stored, std::size_t place) noexcept {
  return (stored.added_keys >> place & 1) != 0;
}

KeyKinds kinds_of_key(const TableLayout& layout, const StoredSchema& stored, std::size_t place) {
  const IndexPlace mode = is_added(stored, place) ? kModeOfAddedKeys : mode_of(layout);
  return kinds_of(stored.schema.keys[place], mode);
}

std::vector<KeyShape> shapes_of(const TableLayout& layout, const StoredSchema& stored) {
  std::vector<KeyShape> shapes;
  shapes.reserve(stored.schema.keys.size());
  for (std::size_t i = 0; i < stored.schema.keys.size(); ++i)
    shapes.push_back(KeyShape::of(kinds_of_key(layout, stored, i), stored.schema.keys[i].dropped,
                                  is_added(stored, i)));
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
           definition().stored.key_additions, fmt::format("table {}, index runs", name())) {
  rows.layouts().set_shape(delta_shape_of(schema()));
}

// A statement that takes the new definition finds the bit, too. A statement that goes on with the
// former definition may miss it only for checks that are dropped.
void TableData::define(StoredSchema stored) {
  auto next = std::make_unique<const TableDefinition>(std::move(stored), pending);
  const bool has_checks = !next->checks.empty();
  if (has_checks) constraints.add(RowConstraints::kChecked);
  definitions.put(std::move(next));
  if (!has_checks) constraints.remove(RowConstraints::kChecked);
}

void TableData::make_keys() {
  const StoredSchema& stored = definition().stored;
  const std::vector<KeySchema>& wanted = stored.schema.keys;
  FLUGS_CHECK(columns.size() == stored.schema.columns.size());
  FLUGS_CHECK(wanted.size() <= kKeysMax && keys.empty());
  keys.set_size(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].dropped) continue;
    keys.add(i,
             make_key(i, wanted[i], kinds_of_key(layout, stored, i), KeyIndex::Origin::kOpening));
  }
}

// Behind the hint indexes of columns, the extent of a table that was made with hints has as much
// room for each of its first keys.
std::unique_ptr<KeyIndex> TableData::make_key(std::size_t place, const KeySchema& key,
                                              KeyKinds kinds, KeyIndex::Origin origin) {
  std::byte* room = nullptr;
  if (facts_of(kinds.for_lookups).is_in_pool)
    room = reinterpret_cast<std::byte*>(hints_of(layout, layout.column_count + place));
  std::vector<std::uint16_t> positions = positions_of(schema(), key);
  for (const std::uint16_t column : positions) columns[column]->note_in_key();
  return std::make_unique<KeyIndex>(kinds, KeyParts{pool, room, rows, columns, runs, place}, name(),
                                    key, std::move(positions), origin);
}

void TableData::find_keys_in_runs() noexcept {
  for (const std::size_t place : KeySet(keys.kept()))
    keys[place]->entries().runs().set_used(runs.serve_key(place));
}

void TableData::add_pages(pmem::WarmList& pages) const {
  for (const KeyIndex* key : keys) key->entries().add_pages(pages);
  runs.add_pages(pages);
  columns.for_each_used([&](const columns::Column& column) { column.add_pages(pages); });
  rows.add_pages(pages);
}

Status TableData::no_column(const TableDefinition& now, ColumnId column) const {
  if (column.value() < now.columns.size())
    return Status(StatusCode::kInvalidArgument, SchemaPart::of(name()),
                  fmt::format("column {} was dropped", column.value()));
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(name()),
                fmt::format("no column {}, it has {}", column.value(), now.columns.size()));
}

Status TableData::no_key(std::size_t index) const {
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(name()),
                fmt::format("no key {}", index));
}

}  // namespace flugs::engine
