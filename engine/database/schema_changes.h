#pragma once

#include <cstdint>
#include <string>

#include "engine/database/catalog.h"
#include "flugs/schema.h"

namespace flugs::engine {

/// Renames tables and their parts, and adds, drops and changes columns, while transactions run
/// (decisions 0022, 0023 and 0025).
///
/// Invariant: names are unique, and what refers to a table, column or key by its name follows it.
/// Thread-safety: any thread; each change is made under the catalogue's mutex.
class SchemaChanges final {
 public:
  SchemaChanges(Catalog& catalog, TransactionManager& transactions,
                BackgroundThreads& threads) noexcept
      : catalog_(catalog), transactions_(transactions), threads_(threads) {}

  Status rename_table(TableId id, const std::string& name);
  Status rename_column(TableId id, ColumnId column, const std::string& name);
  Status rename_key(KeyId key, const std::string& name);
  Result<ColumnId> add_column(TableId id, const ColumnSchema& column);
  Status drop_column(TableId id, ColumnId column);
  Status change_type(TableId id, ColumnId column, Type type);
  Status set_delta_layout(TableId id, DeltaLayout layout,
                          std::vector<std::vector<std::string>> column_groups);

 private:
  static void name_referrers(const Table& parent);

  Catalog& catalog_;
  TransactionManager& transactions_;
  BackgroundThreads& threads_;
};

}  // namespace flugs::engine
