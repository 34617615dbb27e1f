#pragma once

#include <cstdint>
#include <vector>

#include "test/support/crash_rig.h"

namespace flugs::test {

/// Runs the writes in a transaction. The first failure ends it.
Status write_all(engine::DatabaseCore& core, Transaction& transaction, const Writes& writes);

/// Commits; `timestamp`, the latest that was acknowledged, must be below the new one.
Status commit_above(Transaction& transaction, std::uint64_t& timestamp);

/// New transactions for whatever a recovered database holds: rows inserted, updated, deleted and
/// inserted again in every table, with values that are new, long or NULL. They differ by `slot`.
std::vector<Writes> probe_writes(engine::DatabaseCore& core, const DatabaseState& state,
                                 std::uint32_t slot);

}  // namespace flugs::test
