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

/// The writers' transaction `number` in `life`, from which the ordinals of its rows follow; the
/// slots are its inserted rows, then the change.
constexpr std::uint64_t restart_serial(std::uint32_t life, std::uint32_t writer,
                                       std::uint64_t number, std::size_t slot) noexcept {
  return (((std::uint64_t{life} << 4 | writer) << 32 | number) << 4) | slot;
}

}  // namespace flugs::bench
