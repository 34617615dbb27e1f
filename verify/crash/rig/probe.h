#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "verify/crash/rig/state.h"

namespace flugs::crash {

/// Finds rows by the value in their first column: by the key on it, else by one scan of the table.
/// Valid while no other thread writes to the database, and no table is created or dropped.
class RowIds {
 public:
  explicit RowIds(engine::DatabaseCore& core) : core_(core) {}

  Result<RowId> find(TableId table, std::int32_t id, Transaction& transaction);
  /// Notes that the row with this id is there now.
  void put(TableId table, std::int32_t id, RowId row);
  void remove(TableId table, std::int32_t id);

 private:
  static Status scan(TableId table, const TableSchema& schema, Transaction& transaction,
                     std::unordered_map<std::int32_t, RowId>& rows);

  engine::DatabaseCore& core_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::int32_t, RowId>> tables_;
};

/// Runs the writes in a transaction. The first failure ends it.
Status write_all(engine::DatabaseCore& core, Transaction& transaction, const Writes& writes,
                 RowIds& row_ids);

/// Commits. The new time-stamp must be above `timestamp`, the latest that was acknowledged.
Status commit_above(Transaction& transaction, std::uint64_t& timestamp);

/// Runs the writes as a transaction. Unless `expected` is null, checks before the commit that the
/// transaction sees it. Stores the commit time-stamp in `timestamp`; it must be above the old one.
Status run_writes(engine::DatabaseCore& core, const Writes& writes, RowIds& row_ids,
                  const DatabaseState* expected, std::uint64_t& timestamp);
/// The same with a savepoint behind `before`, to which it goes back after writing `undone`.
Status run_partly(engine::DatabaseCore& core, const Writes& before, const Writes& undone,
                  const Writes& after, std::uint64_t& timestamp);
Status run_step(engine::DatabaseCore& core, const Step& step, std::uint64_t& timestamp);

/// A row of the table, and new values for all its columns but the first. Rows that differ in id or
/// salt differ in every column that is not NULL.
std::vector<Value> probe_row(const TableSchema& schema, std::int32_t id, std::uint32_t salt);
std::vector<ColumnValue> probe_changes(const TableSchema& schema, std::int32_t id,
                                       std::uint32_t salt);

/// New transactions for any recovered database: in every table they insert, update, delete and
/// insert rows again, with values that are new, long or NULL. Different `slot`s give different
/// rows.
std::vector<Writes> probe_writes(engine::DatabaseCore& core, const DatabaseState& state,
                                 std::uint32_t slot);

}  // namespace flugs::crash
