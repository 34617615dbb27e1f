#pragma once

#include <cstdint>
#include <string>

#include "bench/restart/restart_control.h"
#include "flugs/database.h"

namespace flugs::bench {

/// The first query after a restart: c1 to c4 of one row, by primary key if there is one, else by
/// row id, another row in each life; or sum(c1), as the plan has it. Gives kCorrupt when the answer
/// is wrong; whether a sum was, check_restart_answers finds. Fails as Transaction::get,
/// and Query::run.
Status ask_first_query(Database& database, TableId table, RestartControl& control);

/// Asks such queries for a second, one after the other, rows all over the table: from when on they
/// were as fast as they are in the second half of it. Fails as ask_first_query.
Status find_full_speed(Database& database, TableId table, RestartControl& control);

/// Checks all that can be asked of the table: all samples, what the writers of the life before were
/// promised, and, with their times, `select ... where c1 = v` and `sum(c1)`. Transactions in flight
/// that are found become part of the totals. Fails with kCorrupt and the first wrong answer.
Status check_restart_answers(Database& database, TableId table, RestartControl& control);

}  // namespace flugs::bench
