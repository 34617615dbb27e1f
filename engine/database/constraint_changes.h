#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "engine/database/catalog.h"
#include "engine/database/key_changes.h"
#include "flugs/function_ref.h"
#include "flugs/progress.h"
#include "flugs/schema.h"

namespace flugs::engine {

class RowValidation;

/// Adds checks, NOT NULL and foreign keys to tables that have rows, and drops them, while
/// transactions go on (decision 0036).
///
/// Invariants:
/// * Writers obey a constraint before the rows that are there are checked. So no row that breaks it
///   comes in between.
/// * The schema has a constraint only when no snapshot is left in which a row breaks it.
/// * A call that fails has changed nothing.
///
/// Thread-safety: any thread; one such change of a table at a time, and no merge meanwhile.
class ConstraintChanges final {
 public:
  ConstraintChanges(Catalog& catalog, TransactionManager& transactions, KeyChanges& keys) noexcept
      : catalog_(catalog), transactions_(transactions), keys_(keys) {}

  Status add_check(TableId id, const CheckSchema& wanted, const CallOptions& options);
  Status drop_check(TableId id, std::string_view name);
  Status set_not_null(TableId id, ColumnId column, bool not_null, const CallOptions& options);
  Status set_default(TableId id, ColumnId column, const std::optional<Value>& value);
  Status add_foreign_key(TableId id, const ForeignKeySchema& wanted, const CallOptions& options);
  Status drop_foreign_key(TableId id, std::string_view name);

 private:
  struct NewForeignKey;

  Status admit_null(Table& table, ColumnId column);
  Status demand_values(Table& table, ColumnId column, const CallOptions& options);
  Status validate(Table& table, const std::string& what, const CallOptions& options,
                  FunctionRef<Status(const RowValidation& rows)> rows_hold);
  static void take_back(Table& table);
  Status begin(Table& table, const ForeignKeySchema& wanted, NewForeignKey& made);
  Status finish(Table& table, const NewForeignKey& made);

  Catalog& catalog_;
  TransactionManager& transactions_;
  KeyChanges& keys_;
};

}  // namespace flugs::engine
