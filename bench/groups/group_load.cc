#include "bench/groups/group_load.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "bench/support/bulk_load.h"

namespace flugs::bench {

namespace {

constexpr std::uint64_t kRowsPerInsert = 250;  // their values stay in the caches
constexpr std::size_t kGroupColumns = 4;

Status load_group_range(Database& database, TableId table, const GroupData& data,
                        std::uint64_t begin, std::uint64_t end) {
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return std::move(transaction).status();
  std::array<Value, kRowsPerInsert * kGroupColumns> values;
  std::array<std::string, kRowsPerInsert> texts;  // values view them
  for (std::uint64_t first = begin; first < end; first += kRowsPerInsert) {
    const std::size_t count = std::min<std::uint64_t>(kRowsPerInsert, end - first);
    for (std::size_t i = 0; i < count; ++i) {
      const GroupRow row = data.row(first + i);
      Value* out = &values[i * kGroupColumns];
      out[0] = Value::int64(row.k);
      texts[i] = GroupData::text(row.k);
      out[1] = Value::string(texts[i]);
      out[2] = Value::int32(row.v);
      out[3] = Value::int32(row.few);
    }
    Status inserted = transaction->insert_rows(
        table, std::span<const Value>(values).first(count * kGroupColumns));
    if (!inserted.ok()) return inserted;
  }
  return transaction->commit();
}

}  // namespace

Result<TableId> load_groups(
    Database& database, const GroupData& data, std::uint32_t threads,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress) {
  TableSchema schema("g");
  schema.column("k", Type::kInt64).not_null().direct();
  schema.column("t", Type::kString).not_null();
  schema.column("v", Type::kInt32).not_null().direct();
  schema.column("few", Type::kInt32).not_null();
  Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table;
  BulkLoad bulk;
  bulk.end = data.rows();
  bulk.threads = threads;
  bulk.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) {
    return load_group_range(database, *table, data, begin, end);
  };
  bulk.progress = progress;
  if (Status loaded = load_in_parallel(bulk); !loaded.ok()) return loaded;
  return table;
}

}  // namespace flugs::bench
