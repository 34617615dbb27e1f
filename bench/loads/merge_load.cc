#include "bench/loads/merge_load.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/support/bulk_load.h"
#include "bench/support/random.h"

namespace flugs::bench {

namespace {

constexpr std::uint64_t kDistinctMin = 10;

Status load_merge_range(Database& database, TableId table, const MergeLoad& load,
                        std::uint64_t first, std::uint64_t end) {
  std::vector<Value> values;
  values.reserve((end - first) * load.columns);
  for (std::uint64_t row = first; row < end; ++row)
    for (std::uint32_t column = 0; column < load.columns; ++column)
      values.push_back(Value::int32(load.value(row, column)));
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return std::move(transaction).status();
  if (Status s = transaction->insert_rows(table, values, {}); !s.ok()) return s;
  return transaction->commit();
}

}  // namespace

double codes_per_s_per_core(const MergeReport& report) noexcept {
  return static_cast<double>(report.codes) / std::max(report.build_cpu_us * 1e-6, 1e-9);
}

std::int32_t MergeLoad::value(std::uint64_t row, std::uint32_t column) const noexcept {
  std::uint64_t domain = distinct;
  for (std::uint32_t i = 0; i < column && domain > kDistinctMin; ++i) domain /= 10;
  domain = std::max<std::uint64_t>(domain, 1);
  const std::uint64_t hash = mix64(row ^ mix64(seed + column));
  return static_cast<std::int32_t>((hash >> 32) * domain >> 32);
}

Result<TableId> load_merge_table(Database& database, const MergeLoad& load) {
  TableSchema schema("r");
  for (std::uint32_t column = 0; column < load.columns; ++column)
    schema.column(fmt::format("c{}", column + 1), Type::kInt32).not_null().dictionary();
  Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table;
  BulkLoad bulk;
  bulk.end = load.rows;
  bulk.threads = load.threads;
  bulk.load_range = [&](std::uint64_t first, std::uint64_t end, std::uint32_t) {
    return load_merge_range(database, *table, load, first, end);
  };
  Status loaded = load_in_parallel(bulk);
  if (!loaded.ok()) return loaded;
  return table;
}

Result<std::vector<std::int64_t>> merge_table_sums(Database& database, TableId table,
                                                   std::uint32_t columns) {
  Result<Transaction> transaction = database.begin(AccessMode::kReadOnly);
  if (!transaction.ok()) return std::move(transaction).status();
  std::vector<ColumnId> wanted;
  wanted.reserve(columns);
  for (std::uint32_t i = 0; i < columns; ++i) wanted.emplace_back(static_cast<std::uint16_t>(i));
  std::vector<std::int64_t> sums(columns + 1);
  Status scanned = transaction->scan(table, wanted, Predicate::all(), [&](const ScanBatch& batch) {
    for (std::uint32_t i = 0; i < columns; ++i)
      for (const std::int64_t value : batch.column_unchecked<std::int64_t>(i)) sums[i] += value;
    sums[columns] += static_cast<std::int64_t>(batch.row_count());
    return true;
  });
  if (!scanned.ok()) return scanned;
  return sums;
}

}  // namespace flugs::bench
