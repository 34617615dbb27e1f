// The schema of a table that was changed after its creation, in the pool.

#include "tables/catalog/schema_block.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "columns/cells/row_layout.h"
#include "tables/catalog/schema_codec.h"

namespace flugs::engine {

namespace {

std::uint64_t words_bytes(const SchemaBlockLayout& block) noexcept {
  return std::uint64_t{block.added_columns} * sizeof(std::uint64_t) +
         std::uint64_t{block.changed_columns} * sizeof(ChangedColumnLayout);
}

std::uint64_t checksum_of(const SchemaBlockLayout& block) noexcept {
  const std::uint64_t sum = XXH3_64bits(&block.magic, 16);
  const std::uint64_t rest = sizeof block - offsetof(SchemaBlockLayout, table_id);
  return XXH3_64bits_withSeed(&block.table_id, rest + words_bytes(block) + block.schema_bytes, sum);
}

}  // namespace

namespace {

// The column before its next change, from change number `change` on; its current state if no change
// follows.
ColumnSchema edition_before(const StoredSchema& stored, std::size_t column, std::size_t change) {
  ColumnSchema schema = stored.schema.columns[column];
  for (std::size_t i = change; i < stored.changed_columns.size(); ++i) {
    const ChangedColumnLayout& changed = stored.changed_columns[i];
    if (changed.column != column) continue;
    schema.type = static_cast<Type>(changed.type);
    schema.encoding = static_cast<Encoding>(changed.encoding);
    break;
  }
  return schema;
}

bool has_edition(std::span<const ChangedColumnLayout> changes, std::size_t column,
                 std::uint16_t edition) {
  return std::any_of(changes.begin(), changes.end(), [&](const ChangedColumnLayout& changed) {
    return changed.column == column && changed.edition == edition;
  });
}

// The first key for which schema and bits disagree: each key was either added or is from the
// table's creation. kKeysMax: all agree.
std::size_t first_wrong_key(const StoredSchema& stored) {
  std::size_t k = 0;
  for (; k < kKeysMax; ++k) {
    const bool is_added = (stored.added_keys >> k & 1) != 0;
    const bool is_there = k < stored.schema.keys.size();
    if (is_added ? !is_there : is_there && k >= stored.created_keys) break;
  }
  return k;
}

// Whether the last change has a valid number that no other change of its column has.
bool is_new_edition(std::span<const ChangedColumnLayout> changes) {
  const ChangedColumnLayout& last = changes.back();
  return last.edition != 0 && last.edition < columns::kEditionsMax &&
         !has_edition(changes.first(changes.size() - 1), last.column, last.edition);
}

}  // namespace

Status check_room_for_edition(const StoredSchema& stored, std::size_t column) {
  if (free_edition(stored, column) == 0)
    return Status(StatusCode::kBusy,
                  fmt::format("rows have {} editions of the column, the most that it can have: "
                              "merge the table first",
                              columns::kEditionsMax));
  if (stored.changed_columns.size() >= kChangesMax)
    return Status(StatusCode::kBusy,
                  fmt::format("rows have {} changed editions of the table's columns, the most that "
                              "it can have: merge the table first",
                              stored.changed_columns.size()));
  return {};
}

// Takes the number that has been out of use longest.
std::uint16_t free_edition(const StoredSchema& stored, std::size_t column) {
  const std::span changes(stored.changed_columns);
  std::uint16_t newest = 0;
  for (const ChangedColumnLayout& changed : changes)
    if (changed.column == column) newest = changed.edition;
  for (std::uint16_t step = 1; step < columns::kEditionsMax; ++step) {
    const auto number =
        static_cast<std::uint16_t>((newest + step - 1) % (columns::kEditionsMax - 1) + 1);
    if (!has_edition(changes, column, number)) return number;
  }
  return 0;
}

void forget_edition(StoredSchema& stored, std::size_t change) {
  FLUGS_CHECK(change < stored.changed_columns.size());
  const ChangedColumnLayout gone = stored.changed_columns[change];
  const auto at = stored.changed_columns.erase(stored.changed_columns.begin() +
                                               static_cast<std::ptrdiff_t>(change));
  const auto next = std::find_if(at, stored.changed_columns.end(), [&](const auto& changed) {
    return changed.column == gone.column;
  });
  FLUGS_CHECK(next != stored.changed_columns.end());  // the newest stays
  next->type = gone.type;
  next->encoding = gone.encoding;
}

ColumnSchema first_edition(const StoredSchema& stored, std::size_t column) {
  return edition_before(stored, column, 0);
}

ColumnSchema edition_made_by(const StoredSchema& stored, std::size_t change) {
  FLUGS_CHECK(change < stored.changed_columns.size());
  return edition_before(stored, stored.changed_columns[change].column, change + 1);
}

Result<pmem::Extent> write_schema_block(pmem::Pool& pool, std::uint32_t table_id,
                                        const StoredSchema& stored, pmem::Persister& persister) {
  FLUGS_CHECK(first_wrong_key(stored) == kKeysMax);
  FLUGS_CHECK(stored.added_columns.size() <= stored.schema.columns.size());
  FLUGS_CHECK(stored.changed_columns.size() <= kChangesMax);
  const std::string schema = encode_schema(stored.schema);
  const std::span offsets(stored.added_columns);
  const std::span changes(stored.changed_columns);
  const std::uint64_t bytes =
      sizeof(SchemaBlockLayout) + offsets.size_bytes() + changes.size_bytes() + schema.size();
  Result<pmem::Extent> extent =
      pool.allocator().allocate(bytes, persister, pmem::Purpose::kReclaim);
  if (!extent.ok()) return extent;
  auto& block = *pool.at(pmem::OffsetPtr<SchemaBlockLayout>{extent->offset});
  block.magic = SchemaBlockLayout::kMagic;
  block.bytes = extent->bytes;
  block.table_id = table_id;
  block.added_columns = static_cast<std::uint16_t>(stored.added_columns.size());
  block.changed_columns = static_cast<std::uint16_t>(changes.size());
  block.added_keys = stored.added_keys;
  block.key_additions = stored.key_additions;
  block.schema_bytes = schema.size();
  auto* behind = reinterpret_cast<std::byte*>(&block + 1);
  if (!offsets.empty()) std::memcpy(behind, offsets.data(), offsets.size_bytes());
  behind += offsets.size_bytes();
  if (!changes.empty()) std::memcpy(behind, changes.data(), changes.size_bytes());
  std::memcpy(behind + changes.size_bytes(), schema.data(), schema.size());
  FLUGS_CHECK(sizeof block + words_bytes(block) + block.schema_bytes == bytes);
  block.checksum = checksum_of(block);
  persister.flush(&block, bytes, "alter_table/1");
  return extent;
}

Result<StoredSchema> read_schema(pmem::Pool& pool, const TableLayout& table, TableSchema created) {
  StoredSchema stored;
  stored.created_keys = created.keys.size();
  if (table.schema_block == 0) {
    stored.schema = std::move(created);
    return stored;
  }
  const std::uint64_t offset = table.schema_block;
  const std::uint64_t pool_bytes = pool.medium().bytes();
  const auto corrupt = [&](const char* what, std::uint64_t expected, std::uint64_t found) {
    return Status(
        StatusCode::kCorrupt,
        fmt::format("{}: table {}, created as {}: schema at offset {}: {}: expected {}, "
                    "found {}",
                    pool.path(), table.table_id, created.name, offset, what, expected, found));
  };
  if (offset % 64 != 0 || pool_bytes < sizeof(SchemaBlockLayout) ||
      offset > pool_bytes - sizeof(SchemaBlockLayout))
    return corrupt("offset aligned to 64 and inside the pool of bytes", pool_bytes, offset);
  const auto& block = *pool.at(pmem::OffsetPtr<SchemaBlockLayout>{offset});
  if (block.magic != SchemaBlockLayout::kMagic)
    return corrupt("magic", SchemaBlockLayout::kMagic, block.magic);
  const std::uint64_t before = sizeof block + words_bytes(block);
  if (block.bytes > pool_bytes - offset || before > block.bytes ||
      block.schema_bytes > block.bytes - before)
    return corrupt("schema inside the extent of bytes", block.bytes, before + block.schema_bytes);
  if (block.checksum != checksum_of(block))
    return corrupt("checksum", checksum_of(block), block.checksum);
  if (block.table_id != table.table_id) return corrupt("table", table.table_id, block.table_id);
  const auto* behind = reinterpret_cast<const char*>(&block + 1);
  stored.added_columns.resize(block.added_columns);
  stored.changed_columns.resize(block.changed_columns);
  const std::span offsets(stored.added_columns);
  const std::span<ChangedColumnLayout> changes(stored.changed_columns);
  if (!offsets.empty()) std::memcpy(offsets.data(), behind, offsets.size_bytes());
  if (!changes.empty())
    std::memcpy(changes.data(), behind + offsets.size_bytes(), changes.size_bytes());
  stored.added_keys = block.added_keys;
  stored.key_additions = block.key_additions;
  Result<TableSchema> schema =
      decode_schema({behind + words_bytes(block), static_cast<std::size_t>(block.schema_bytes)});
  if (!schema.ok())
    return Status(schema.code(), fmt::format("{}: table {}: {}", pool.path(), table.table_id,
                                             schema.status().message()));
  stored.schema = *std::move(schema);
  const std::size_t columns = std::size_t{table.column_count} + block.added_columns;
  if (stored.schema.columns.size() != columns)
    return corrupt("columns in the schema", columns, stored.schema.columns.size());
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (changes[i].column >= columns)
      return corrupt("a changed column below", columns, changes[i].column);
    if (!is_new_edition(changes.first(i + 1)))
      return corrupt("a number that no edition of the column has, below", columns::kEditionsMax,
                     changes[i].edition);
  }
  if (const std::size_t k = first_wrong_key(stored); k != kKeysMax)
    return corrupt("a key that was added, or from the table's creation, as number", k,
                   block.added_keys);
  return stored;
}

pmem::Extent schema_block_of(pmem::Pool& pool, const TableLayout& table) noexcept {
  if (table.schema_block == 0) return {};
  const auto& block = *pool.at(pmem::OffsetPtr<SchemaBlockLayout>{table.schema_block});
  return {table.schema_block, block.bytes};
}

}  // namespace flugs::engine
