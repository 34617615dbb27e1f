#include "tables/data/table_layout.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/types.h"
#include "columns/cells/row_layout.h"
#include "columns/column/column.h"
#include "tables/catalog/added_column.h"
#include "tables/catalog/key_kinds.h"
#include "tables/catalog/schema_checks.h"
#include "tables/catalog/schema_codec.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

namespace {

std::uint64_t checksum_of(const TableLayout& layout) noexcept {
  const auto* bytes = reinterpret_cast<const std::byte*>(&layout);
  std::uint64_t sum = XXH3_64bits(&layout.magic, 16);
  sum = XXH3_64bits_withSeed(&layout.table_id, 32, sum);
  return XXH3_64bits_withSeed(bytes + layout.schema_offset, layout.schema_bytes, sum);
}

// Whether the parts of a column that no change of a schema touches are the same.
bool is_same_column(const ColumnSchema& a, const ColumnSchema& b) noexcept {
  return a.type == b.type && a.encoding == b.encoding && a.scale == b.scale &&
         (a.auto_increment == b.auto_increment || b.dropped);
}

static_assert(sizeof(TableLayout) % alignof(columns::ColumnLayout) == 0);

std::uint64_t hint_bytes_of(const TableSchema& schema) noexcept {
  return (schema.columns.size() + schema.keys.size()) * sizeof(columns::HintIndexLayout);
}

}  // namespace

static_assert(kColumnGroupsMax < columns::kCellGroups);

columns::DeltaShape delta_shape_of(const TableSchema& schema) {
  if (schema.delta_layout == DeltaLayout::kRows) return {};
  columns::DeltaShape shape{columns::RowShape::kColumns};
  if (!schema.column_groups.empty()) shape.groups.resize(schema.columns.size());
  for (std::size_t i = 0; i < schema.column_groups.size(); ++i)
    for (const std::string& column : schema.column_groups[i])
      shape.groups[position_of(schema, column)] = static_cast<std::uint8_t>(i + 1);
  return shape;
}

Result<std::uint32_t> widest_row(const TableSchema& schema) {
  std::vector<columns::CellNeed> needs(schema.columns.size());
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const ColumnSchema& column = schema.columns[i];
    const bool direct = column.encoding == Encoding::kDirect;
    const bool is_text = is_text_type(column.type);
    needs[i].bits = direct ? (is_text ? 128 : 64) : 32;
    if (column.dropped) needs[i].bits = 0;
    needs[i].kind = !direct   ? columns::CellKind::kCode
                    : is_text ? columns::CellKind::kText
                              : columns::CellKind::kInteger;
    needs[i].null_bit = direct && column.nullable;
  }
  const Result<columns::RowLayout> widest = delta_shape_of(schema).layout(needs);
  if (widest.ok()) return widest->row_bytes();
  return Status(StatusCode::kInvalidArgument, SchemaPart::of(schema.name),
                widest.status().message());
}

Result<pmem::Extent> make_table_layout(pmem::Pool& pool, const TableSchema& schema,
                                       std::uint32_t table_id, IndexPlace index_place,
                                       std::uint64_t segment_bytes, pmem::Persister& persister) {
  FLUGS_CHECK(table_id != 0 && schema.columns.size() <= 0xFFFF);
  const Result<std::uint32_t> widest = widest_row(schema);
  if (!widest.ok()) return widest.status();
  const std::string schema_bytes = encode_schema(schema);
  const std::uint64_t schema_offset =
      sizeof(TableLayout) + schema.columns.size() * sizeof(columns::ColumnLayout);
  const std::uint64_t schema_end = schema_offset + schema_bytes.size();
  const bool has_hints = is_in_pool(index_place);
  Result<pmem::Extent> extent = pool.allocator().allocate(
      has_hints ? pmem::whole_lines(schema_end) + hint_bytes_of(schema) : schema_end, persister);
  if (!extent.ok()) return extent;
  auto* layout = pool.at(pmem::OffsetPtr<TableLayout>{extent->offset});
  layout->magic = TableLayout::kMagic;
  layout->bytes = extent->bytes;
  layout->table_id = table_id;
  layout->column_count = static_cast<std::uint16_t>(schema.columns.size());
  const columns::ChunkGeometry geometry = RowStore::geometry_for(*widest, segment_bytes);
  FLUGS_CHECK(geometry.first_log2 <= geometry.largest_log2);
  layout->first_chunk_rows_log2 = static_cast<std::uint8_t>(geometry.first_log2);
  layout->largest_chunk_rows_log2 = static_cast<std::uint8_t>(geometry.largest_log2);
  layout->schema_offset = schema_offset;
  layout->schema_bytes = schema_bytes.size();
  layout->hints_offset = has_hints ? pmem::whole_lines(schema_end) : 0;
  auto* column_layouts = reinterpret_cast<columns::ColumnLayout*>(layout + 1);
  for (std::size_t i = 0; i < schema.columns.size(); ++i)
    columns::Column::initialise(column_layouts[i], schema.columns[i]);
  std::memcpy(reinterpret_cast<std::byte*>(layout) + schema_offset, schema_bytes.data(),
              schema_bytes.size());
  FLUGS_CHECK(schema_end <= extent->bytes);
  layout->checksum = checksum_of(*layout);
  persister.flush(layout, schema_end, "create_table/1");
  return extent;
}

namespace {

// Checks what changes of the schema made: layouts of added columns, and of the later editions of
// columns whose type changed. An edition may be NULL if the edition before may, and if the schema
// says so for the newest.
Status check_later_columns(pmem::Pool& pool, const TableLayout& layout,
                           const StoredSchema& stored) {
  const auto* created = reinterpret_cast<const columns::ColumnLayout*>(&layout + 1);
  std::vector<bool> nullable(stored.schema.columns.size());
  for (std::size_t i = 0; i < layout.column_count; ++i) nullable[i] = created[i].nullable != 0;
  const auto wrong_null = [&](std::size_t column) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: table {}, column {}: expected an edition that may be NULL, as "
                              "the edition before or the schema says, found one that is NOT NULL",
                              pool.path(), stored.schema.name, column));
  };
  const auto check = [&](std::uint64_t offset, std::size_t column, const ColumnSchema& schema) {
    Result<AddedColumnLayout*> read =
        read_added_column(pool, offset, layout.table_id, stored.schema.name, column, schema);
    if (!read.ok()) return std::move(read).status();
    const bool may_be_null = column_layout_of(**read).nullable != 0;
    if (nullable[column] && !may_be_null) return wrong_null(column);
    nullable[column] = may_be_null;
    return Status();
  };
  for (std::size_t i = 0; i < stored.added_columns.size(); ++i) {
    const std::size_t column = layout.column_count + i;
    Status added = check(stored.added_columns[i], column, first_edition(stored, column));
    if (!added.ok()) return added;
  }
  for (std::size_t i = 0; i < stored.changed_columns.size(); ++i) {
    const ChangedColumnLayout& changed = stored.changed_columns[i];
    const ColumnSchema made = edition_made_by(stored, i);
    if (Status s = check(changed.layout, changed.column, made); !s.ok()) return s;
    if (!columns::keeps_payloads(static_cast<Type>(changed.type), made.type) ||
        made.encoding != Encoding::kDirect)
      return Status(StatusCode::kCorrupt,
                    fmt::format("{}: table {}, change of type {}: column {} of type {} cannot "
                                "have become {}, held directly",
                                pool.path(), stored.schema.name, i, made.name, changed.type,
                                to_string(made.type)));
  }
  for (std::size_t i = 0; i < nullable.size(); ++i)
    if (stored.schema.columns[i].nullable && !nullable[i]) return wrong_null(i);
  return Status();
}

}  // namespace

Result<StoredSchema> check_table_layout(pmem::Pool& pool, std::uint64_t offset) {
  const std::uint64_t pool_bytes = pool.medium().bytes();
  const auto corrupt = [&](const char* what, std::uint64_t expected, std::uint64_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: table at offset {}: {}: expected {}, found {}", pool.path(),
                              offset, what, expected, found));
  };
  if (offset % 64 != 0 || offset > pool_bytes - sizeof(TableLayout))
    return corrupt("offset aligned to 64 and inside the pool of bytes", pool_bytes, offset);
  const auto& layout = *pool.at(pmem::OffsetPtr<TableLayout>{offset});
  if (layout.magic != TableLayout::kMagic)
    return corrupt("magic", TableLayout::kMagic, layout.magic);
  const std::uint64_t columns_end =
      sizeof(TableLayout) + std::uint64_t{layout.column_count} * sizeof(columns::ColumnLayout);
  if (layout.bytes > pool_bytes - offset || layout.schema_offset != columns_end ||
      layout.schema_offset > layout.bytes ||
      layout.schema_bytes > layout.bytes - layout.schema_offset)
    return corrupt("schema inside the extent of bytes", layout.bytes,
                   layout.schema_offset + layout.schema_bytes);
  if (layout.checksum != checksum_of(layout))
    return corrupt("checksum", checksum_of(layout), layout.checksum);
  const auto* bytes = reinterpret_cast<const char*>(&layout) + layout.schema_offset;
  Result<TableSchema> schema = decode_schema({bytes, layout.schema_bytes});
  if (!schema.ok()) return std::move(schema).status();
  if (schema->columns.size() != layout.column_count)
    return corrupt("columns in the schema", layout.column_count, schema->columns.size());
  const std::uint64_t schema_end = pmem::whole_lines(layout.schema_offset + layout.schema_bytes);
  if (layout.hints_offset != 0 && (layout.hints_offset != schema_end || schema_end > layout.bytes ||
                                   hint_bytes_of(*schema) > layout.bytes - schema_end))
    return corrupt("hint indexes behind the schema, at", schema_end, layout.hints_offset);
  if (layout.first_chunk_rows_log2 > layout.largest_chunk_rows_log2 ||
      layout.largest_chunk_rows_log2 > 30)
    return corrupt("rows of a chunk, as a power of two up to", 30, layout.largest_chunk_rows_log2);
  const auto* columns = reinterpret_cast<const columns::ColumnLayout*>(&layout + 1);
  for (std::size_t i = 0; i < schema->columns.size(); ++i)
    if (columns[i].type != static_cast<std::uint8_t>(schema->columns[i].type) ||
        columns[i].encoding != static_cast<std::uint8_t>(schema->columns[i].encoding) ||
        columns[i].nullable != (schema->columns[i].nullable ? 1 : 0))
      return corrupt("column as in the schema, column", i, columns[i].type);
  Result<StoredSchema> stored = read_schema(pool, layout, *schema);
  if (!stored.ok()) return stored;
  if (Status s = check_later_columns(pool, layout, *stored); !s.ok()) return s;
  for (std::size_t i = 0; i < schema->columns.size(); ++i)
    if (!is_same_column(schema->columns[i], first_edition(*stored, i)))
      return corrupt("column as in the later schema, column", i, layout.schema_block);
  return stored;
}

}  // namespace flugs::engine
