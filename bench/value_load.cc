#include "bench/value_load.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "bench/bulk_load.h"
#include "bench/clock.h"
#include "bench/restart_data.h"

namespace flugs::bench {

namespace {

constexpr std::uint64_t kNewRowsPerCall = 250;

Status load_range(Database& database, TableId table, const RestartData& data, std::uint64_t begin,
                  std::uint64_t end) {
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return transaction.status();
  RestartRow row;
  std::vector<Value> values;
  std::array<RowId, kNewRowsPerCall> ids;
  for (std::uint64_t first = begin; first < end; first += kNewRowsPerCall) {
    const std::size_t count = std::min(kNewRowsPerCall, end - first);
    values.clear();
    for (std::size_t k = 0; k < count; ++k) {
      data.row(first + k, row);
      values.insert(values.end(), row.begin(), row.end());
    }
    Status inserted = transaction->insert_rows(table, values, std::span<RowId>(ids).first(count));
    if (!inserted.ok()) return inserted;
  }
  return transaction->commit();
}

}  // namespace

Result<double> load_new_values(Database& database, std::uint64_t rows, std::uint32_t threads) {
  TableSchema schema("new_values");
  for (std::size_t column = 1; column <= kRestartColumns; ++column) {
    schema.column("c" + std::to_string(column), Type::kInt32).not_null();
    schema.columns.back().encoding = Encoding::kDictionary;
  }
  const Result<TableId> table = database.create_table(schema);
  if (!table.ok()) return table.status();
  const RestartData data(rows, 1, Type::kInt32);
  BulkLoad load;
  load.end = rows;
  load.threads = threads;
  load.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) {
    return load_range(database, *table, data, begin, end);
  };
  const std::uint64_t begin = monotonic_ns();
  if (Status s = load_in_parallel(load); !s.ok()) return s;
  return seconds_since(begin);
}

}  // namespace flugs::bench
