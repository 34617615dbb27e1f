// The schema of a table that was changed after its creation, in the pool.

#include "engine/schema_block.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <utility>

#include "engine/schema_codec.h"

namespace flugs::engine {

namespace {

std::uint64_t words_bytes(const SchemaBlockLayout& block) noexcept {
  return std::uint64_t{block.added_columns} * sizeof(std::uint64_t);
}

std::uint64_t checksum_of(const SchemaBlockLayout& block) noexcept {
  const std::uint64_t sum = XXH3_64bits(&block.magic, 16);
  const std::uint64_t rest = sizeof block - offsetof(SchemaBlockLayout, table_id);
  return XXH3_64bits_withSeed(&block.table_id, rest + words_bytes(block) + block.schema_bytes, sum);
}

}  // namespace

Result<pmem::Extent> write_schema_block(pmem::Pool& pool, std::uint32_t table_id,
                                        const StoredSchema& stored, pmem::Persister& persister) {
  const std::string schema = encode_schema(stored.schema);
  const std::uint64_t words = stored.added_columns.size() * sizeof(std::uint64_t);
  const std::uint64_t bytes = sizeof(SchemaBlockLayout) + words + schema.size();
  Result<pmem::Extent> extent = pool.allocator().allocate(bytes, persister);
  if (!extent.ok()) return extent;
  auto& block = *pool.at(pmem::OffsetPtr<SchemaBlockLayout>{extent->offset});
  block.magic = SchemaBlockLayout::kMagic;
  block.bytes = extent->bytes;
  block.table_id = table_id;
  block.added_columns = static_cast<std::uint16_t>(stored.added_columns.size());
  block.added_keys = stored.added_keys;
  block.key_additions = stored.key_additions;
  block.schema_bytes = schema.size();
  auto* behind = reinterpret_cast<std::byte*>(&block + 1);
  if (words != 0) std::memcpy(behind, stored.added_columns.data(), words);
  std::memcpy(behind + words, schema.data(), schema.size());
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
  if (block.added_columns != 0)
    std::memcpy(stored.added_columns.data(), behind, words_bytes(block));
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
  for (std::size_t k = 0; k < kKeysMax; ++k) {
    const bool is_added = (block.added_keys >> k & 1) != 0;
    const bool is_there = k < stored.schema.keys.size();
    if (is_added ? !is_there : is_there && k >= stored.created_keys)
      return corrupt("a key that was added, or from the table's creation, as number", k,
                     block.added_keys);
  }
  return stored;
}

pmem::Extent schema_block_of(pmem::Pool& pool, const TableLayout& table) noexcept {
  if (table.schema_block == 0) return {};
  const auto& block = *pool.at(pmem::OffsetPtr<SchemaBlockLayout>{table.schema_block});
  return {table.schema_block, block.bytes};
}

}  // namespace flugs::engine
