#include "bench/restart/restart_load.h"

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <vector>

#include "bench/restart/restart_writers.h"
#include "bench/support/bulk_load.h"
#include "bench/support/clock.h"

namespace flugs::bench {

namespace {

// Rows handed over in one call: their values stay in the caches.
constexpr std::uint64_t kRowsPerCall = 250;

/// Shared by the loading threads.
struct RestartLoad {
  Database& database;
  TableId table;
  RestartControl& control;
  RestartData data;
};

Status load_restart_range(RestartLoad& load, std::uint64_t begin, std::uint64_t end,
                          RestartTotals& totals) {
  const RestartPlan& plan = load.control.plan();
  const std::uint64_t step = plan.sample_step();
  const std::span<std::uint32_t> samples = load.control.samples();
  const std::uint64_t wanted = load.data.wanted_ordinal();
  Result<Transaction> transaction = load.database.begin();
  if (!transaction.ok()) return transaction.status();
  Status inserted = insert_restart_rows(*transaction, load.table, load.data, plan.keyed, begin, end,
                                        [&](std::uint64_t number, const RestartRow& row, RowId id) {
                                          totals.sum += static_cast<std::uint64_t>(row[0].raw());
                                          totals.matches +=
                                              load.data.ordinal(0, number) == wanted ? 1 : 0;
                                          if (number % step == 0)
                                            samples[number / step] = id.value();
                                        });
  if (!inserted.ok()) return inserted;
  totals.rows += end - begin;
  Status committed = transaction->commit();
  if (committed.ok())
    load.control.status().rows_loaded.fetch_add(end - begin, std::memory_order_relaxed);
  return committed;
}

/// A transaction of the load under which the process is killed.
Status transact(Database& database, TableId table, const RestartControl& control,
                std::uint32_t writer, std::uint64_t number, RestartEntry& entry) {
  const RestartData data = control.plan().data();
  const std::uint32_t life = control.status().life;
  Result<Transaction> transaction = database.begin();
  if (!transaction.ok()) return transaction.status();
  RestartRow row;
  std::array<Value, kRestartColumns + 1> values;
  for (std::size_t slot = 0; slot < RestartEntry::kRows; ++slot) {
    const std::uint64_t serial = restart_serial(life, writer, number, slot);
    data.load_row(serial, row);
    std::copy(row.begin(), row.end(), values.begin());
    values[kRestartColumns] = RestartData::load_id(serial);
    const Result<RowId> id =
        transaction->insert(table, std::span<const Value>(values).first(control.plan().columns()));
    if (!id.ok()) return id.status();
    entry.rows[slot] = id.value().value();
  }
  if (number > 0) {
    const std::uint64_t ordinal =
        data.load_ordinal(1, restart_serial(life, writer, number, RestartEntry::kRows));
    const Result<RowId> id =
        transaction->update(table, RowId(control.log(writer)[number - 1].rows[0]),
                            {{ColumnId{1}, data.value(1, ordinal)}});
    if (!id.ok()) return id.status();
    entry.updated = id.value().value();
  }
  return transaction->commit();
}

Status load_rows(Database& database, TableId table, RestartControl& control, std::uint64_t begin,
                 std::uint64_t end) {
  RestartLoad load{database, table, control, control.plan().data()};
  std::vector<RestartTotals> totals(control.plan().load_threads);
  BulkLoad bulk;
  bulk.begin = begin;
  bulk.end = end;
  bulk.threads = control.plan().load_threads;
  bulk.load_range = [&](std::uint64_t first, std::uint64_t last, std::uint32_t thread) {
    return load_restart_range(load, first, last, totals[thread]);
  };
  Status status = load_in_parallel(bulk);
  if (!status.ok()) return status;
  for (const RestartTotals& share : totals) control.status().totals += share;
  return {};
}

}  // namespace

Result<TableId> create_restart_table(Database& database, const RestartPlan& plan,
                                     const std::string& name) {
  TableSchema schema(name);
  for (std::size_t column = 1; column <= kRestartColumns; ++column) {
    schema.column("c" + std::to_string(column), plan.type).not_null().dictionary();
    schema.columns.back().encoding = Encoding::kDictionary;
  }
  if (plan.keyed) schema.column("id", Type::kInt64).direct().primary_key({"id"});
  return database.create_table(schema);
}

Status insert_restart_rows(Transaction& transaction, TableId table, const RestartData& data,
                           bool keyed, std::uint64_t begin, std::uint64_t end,
                           const RestartRowSeen& seen) {
  std::array<RestartRow, kRowsPerCall> rows;
  std::array<RowId, kRowsPerCall> ids;
  std::vector<Value> values;
  for (std::uint64_t first = begin; first < end; first += kRowsPerCall) {
    const std::size_t count = std::min<std::uint64_t>(kRowsPerCall, end - first);
    values.clear();
    for (std::size_t k = 0; k < count; ++k) {
      data.row(first + k, rows[k]);
      values.insert(values.end(), rows[k].begin(), rows[k].end());
      if (keyed) values.push_back(RestartData::id(first + k));
    }
    Status inserted = transaction.insert_rows(table, values, std::span<RowId>(ids).first(count));
    if (!inserted.ok()) return inserted;
    for (std::size_t k = 0; k < count; ++k) seen(first + k, rows[k], ids[k]);
  }
  return {};
}

Status load_other_restart_tables(Database& database, const RestartPlan& plan) {
  for (std::uint32_t i = 1; i < plan.tables; ++i) {
    const Result<TableId> table = create_restart_table(database, plan, "r" + std::to_string(i));
    if (!table.ok()) return table.status();
    Result<Transaction> transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    Status loaded = insert_restart_rows(*transaction, *table, plan.data(), plan.keyed, 0, plan.rows,
                                        [](std::uint64_t, const RestartRow&, RowId) {});
    if (loaded.ok()) loaded = transaction->commit();
    if (!loaded.ok()) return loaded;
  }
  return {};
}

Status load_restart_rows(Database& database, TableId table, RestartControl& control) {
  const RestartPlan& plan = control.plan();
  const std::uint64_t begin = monotonic_ns();
  std::uint64_t merged = 0;
  if (plan.side == RestartSide::kMain) merged = plan.rows;
  if (plan.side == RestartSide::kHalf) merged = plan.rows / 2;
  Status status = load_rows(database, table, control, 0, merged);
  if (status.ok() && merged != 0) {
    MergeOptions everything;
    everything.scope = MergeScope::kEverything;
    status = database.merge(table, everything).status();
  }
  if (status.ok()) status = load_rows(database, table, control, merged, plan.rows);
  if (status.ok()) status = load_other_restart_tables(database, plan);
  control.status().load_seconds = static_cast<double>(monotonic_ns() - begin) * 1e-9;
  return status;
}

Status run_restart_writers(Database& database, TableId table, RestartControl& control) {
  return write_until_killed(control, [&](std::uint32_t writer) -> RestartTransact {
    return [&, writer](std::uint64_t number, RestartEntry& entry) {
      return transact(database, table, control, writer, number, entry);
    };
  });
}

}  // namespace flugs::bench
