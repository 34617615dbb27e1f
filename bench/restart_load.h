#pragma once

#include <cstdint>

#include "bench/restart_control.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Creates r(c1, c2, c3, c4), dictionary-encoded, and if the plan wants a key id, the primary key.
/// Fails as Database::create_table.
Result<TableId> create_restart_table(Database& database, const RestartPlan& plan);

/// Loads the rows of the plan, 10,000 in a transaction, and remembers RowIds of the samples and the
/// totals. Fails as Transaction::insert and commit.
Status load_restart_rows(Database& database, TableId table, RestartControl& control);

/// Inserts and updates with the plan's writers until the process is killed, or until a transaction
/// fails, which it should not: then it returns why.
Status run_restart_writers(Database& database, TableId table, RestartControl& control);

}  // namespace flugs::bench
