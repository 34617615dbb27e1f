#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/restart/restart_control.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Creates r(c1, c2, c3, c4), dictionary-encoded, and if the plan wants a key id, the primary key.
/// Fails as Database::create_table.
Result<TableId> create_restart_table(Database& database, const RestartPlan& plan,
                                     const std::string& name = "r");

/// Creates and loads the other tables of the plan, r1, r2 and so on, a transaction each.
/// Fails as create_restart_table and insert_restart_rows.
Status load_other_restart_tables(Database& database, const RestartPlan& plan);

/// Told of a row that was inserted: its number, its values, its RowId.
using RestartRowSeen = std::function<void(std::uint64_t, const RestartRow&, RowId)>;

/// Inserts rows `begin` to `end` - 1 of `data`, with their ids when the table has a key id.
/// Fails as Transaction::insert_rows.
Status insert_restart_rows(Transaction& transaction, TableId table, const RestartData& data,
                           bool keyed, std::uint64_t begin, std::uint64_t end,
                           const RestartRowSeen& seen);

/// Loads the rows of the plan, 10,000 in a transaction, and remembers RowIds of the samples and the
/// totals. Fails as Transaction::insert and commit.
Status load_restart_rows(Database& database, TableId table, RestartControl& control);

/// Inserts and updates with the plan's writers until the process is killed, or until a transaction
/// fails, which it should not: then it returns why.
Status run_restart_writers(Database& database, TableId table, RestartControl& control);

}  // namespace flugs::bench
