#pragma once

#include <cstdint>

#include "bench/support/random.h"
#include "engine/database/database_core.h"

namespace flugs::damage {

/// Uses a database as its users do: reads every row by scan, by key and by range, audits it, writes
/// to every table, drops a table, makes a table. Any answer is right here: the database only must
/// answer. Returns a sum of all that was read, so that the compiler leaves nothing out as unused.
std::uint64_t exercise(engine::DatabaseCore& core, bench::Random& random);

}  // namespace flugs::damage
