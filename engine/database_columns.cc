// Columns that come and go while transactions go on.

#include "engine/database_core.h"

namespace flugs::engine {

Result<ColumnId> DatabaseCore::add_column(TableId id, const ColumnSchema& column) {
  const std::lock_guard guard(ddl_mutex_);
  Table* altered = table(id);
  if (altered == nullptr) return no_table();
  return altered->add_column(column, hint_tail_max());
}

Status DatabaseCore::drop_column(TableId id, ColumnId column) {
  const std::lock_guard guard(ddl_mutex_);
  Table* altered = table(id);
  if (altered == nullptr) return no_table();
  return altered->drop_column(column);
}

}  // namespace flugs::engine
