#include "bench/scan/scan_load.h"

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "bench/support/bulk_load.h"

namespace flugs::bench {

namespace {

// Rows handed over in one call: their values stay in the caches.
constexpr std::uint64_t kScanRowsPerCall = 250;

void values_of(const ScanData& data, const ScanRow& row, Value* out) {
  for (const std::int32_t integer : row.integers) *out++ = Value::int32(integer);
  *out++ = Value::int32(row.low);
  *out = Value::string(data.text(row.text));
}

Status load_scan_range(Database& database, TableId table, const ScanData& data, std::uint64_t begin,
                       std::uint64_t end, ScanTotals& totals) {
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return std::move(transaction).status();
  std::array<Value, kScanRowsPerCall * kScanColumns> values;
  for (std::uint64_t first = begin; first < end; first += kScanRowsPerCall) {
    const std::size_t count = std::min<std::uint64_t>(kScanRowsPerCall, end - first);
    for (std::size_t i = 0; i < count; ++i) {
      ScanRow row;
      data.row(first + i, row);
      totals.add(row);
      values_of(data, row, &values[i * kScanColumns]);
    }
    Status inserted =
        transaction->insert_rows(table, std::span<const Value>(values).first(count * kScanColumns));
    if (!inserted.ok()) return inserted;
  }
  return transaction->commit();
}

}  // namespace

Result<TableId> create_scan_table(Database& database, Encoding encoding) {
  TableSchema schema("r");
  for (const char* name : {"a", "b", "c", "d"}) {
    schema.column(name, Type::kInt32).not_null();
    schema.columns.back().encoding = encoding;
  }
  schema.column("lc", Type::kInt32).not_null();
  schema.column("s", Type::kString).not_null();
  return database.create_table(schema);
}

Status load_scan_rows(Database& database, TableId table, const ScanData& data, const ScanLoad& load,
                      ScanTotals& totals) {
  std::vector<ScanTotals> shares(std::max(load.threads, 1u), ScanTotals(data));
  BulkLoad bulk;
  bulk.begin = load.begin;
  bulk.end = load.end;
  bulk.threads = load.threads;
  bulk.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t thread) {
    return load_scan_range(database, table, data, begin, end, shares[thread]);
  };
  bulk.progress = load.progress;
  Status loaded = load_in_parallel(bulk);
  if (!loaded.ok()) return loaded;
  for (const ScanTotals& share : shares) totals.add(share);
  return {};
}

}  // namespace flugs::bench
