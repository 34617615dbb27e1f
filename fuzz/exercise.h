#pragma once

#include <cstdint>

#include "bench/random.h"
#include "engine/database/database_core.h"

namespace flugs::fuzz {

/// Uses a database as its users do: reads every row by scan, by key and by range, audits it, writes
/// to every table, drops one, makes one. Whatever it answers is right here; that it answers at all
/// is the point. Returns a sum of all that was read, so that nothing is left out as unused.
std::uint64_t exercise(engine::DatabaseCore& core, bench::Random& random);

}  // namespace flugs::fuzz
