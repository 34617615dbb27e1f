#pragma once

#include <cstdint>
#include <vector>

#include "proof/rig.h"

namespace flugs::proof {

/// Runs the writes in a transaction. The first failure ends it.
Status write_all(engine::DatabaseCore& core, Transaction& transaction, const Writes& writes);

/// Commits; `timestamp`, the latest that was acknowledged, must be below the new one.
Status commit_above(Transaction& transaction, std::uint64_t& timestamp);

/// A row of the table, and new values for all its columns but the first. Rows that differ in id or
/// salt differ in every column that is not NULL.
std::vector<Value> probe_row(const TableSchema& schema, std::int32_t id, std::uint32_t salt);
std::vector<ColumnValue> probe_changes(const TableSchema& schema, std::int32_t id,
                                       std::uint32_t salt);

/// New transactions for whatever a recovered database holds: rows inserted, updated, deleted and
/// inserted again in every table, with values that are new, long or NULL. They differ by `slot`.
std::vector<Writes> probe_writes(engine::DatabaseCore& core, const DatabaseState& state,
                                 std::uint32_t slot);

}  // namespace flugs::proof
