#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "proof/state.h"

namespace flugs::proof {

/// Where the rows lie, by what is in their first column: by the key on it, else by one scan of the
/// table. As long as nobody else writes to the database, and no table is created or dropped.
class RowIds {
 public:
  explicit RowIds(engine::DatabaseCore& core) : core_(core) {}

  Result<RowId> find(TableId table, std::int32_t id, Transaction& transaction);
  /// The row with the id lies there now.
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

/// Commits; `timestamp`, the latest that was acknowledged, must be below the new one.
Status commit_above(Transaction& transaction, std::uint64_t& timestamp);

/// Runs the writes as a transaction, which checks before its commit that it sees `expected`, unless
/// that is null. Takes the commit time-stamp over into `timestamp`, above which it must be.
Status run_writes(engine::DatabaseCore& core, const Writes& writes, RowIds& row_ids,
                  const DatabaseState* expected, std::uint64_t& timestamp);
/// The same with a savepoint behind `before`, to which it goes back when `undone` is written.
Status run_partly(engine::DatabaseCore& core, const Writes& before, const Writes& undone,
                  const Writes& after, std::uint64_t& timestamp);
Status run_step(engine::DatabaseCore& core, const Step& step, std::uint64_t& timestamp);

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
