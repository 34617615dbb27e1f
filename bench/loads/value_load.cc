#include "bench/loads/value_load.h"

#include "bench/restart/restart_load.h"
#include "bench/support/bulk_load.h"
#include "bench/support/clock.h"

namespace flugs::bench {

Result<double> load_new_values(Database& database, std::uint64_t rows, std::uint32_t threads) {
  RestartPlan plan;
  plan.rows = rows;
  plan.distinct = rows;
  plan.type = Type::kInt32;
  const Result<TableId> table = create_restart_table(database, plan);
  if (!table.ok()) return table.status();
  const RestartData data = plan.data();
  BulkLoad load;
  load.end = rows;
  load.threads = threads;
  load.load_range = [&](std::uint64_t begin, std::uint64_t end, std::uint32_t) -> Status {
    Result<Transaction> transaction = database.begin();
    if (!transaction.ok()) return transaction.status();
    Status inserted = insert_restart_rows(*transaction, *table, data, plan.keyed, begin, end,
                                          [](std::uint64_t, const RestartRow&, RowId) {});
    return inserted.ok() ? transaction->commit() : inserted;
  };
  const std::uint64_t begin = monotonic_ns();
  if (Status s = load_in_parallel(load); !s.ok()) return s;
  return seconds_since(begin);
}

}  // namespace flugs::bench
