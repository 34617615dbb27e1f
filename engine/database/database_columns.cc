// Columns that come and go while transactions go on.

#include "engine/database/database_core.h"

namespace flugs::engine {

Result<ColumnId> DatabaseCore::add_column(TableId id, const ColumnSchema& column) {
  const std::lock_guard guard(ddl_mutex_);
  Table* altered = table(id);
  if (altered == nullptr) return no_table();
  return altered->table_columns().add_column(column, hint_tail_max());
}

Status DatabaseCore::drop_column(TableId id, ColumnId column) {
  const std::lock_guard guard(ddl_mutex_);
  Table* altered = table(id);
  if (altered == nullptr) return no_table();
  return altered->table_columns().drop_column(column);
}

// A merge writes its groups for the columns that it finds when it begins.
Status DatabaseCore::change_type(TableId id, ColumnId column, Type type) {
  Table* altered = table(id);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  const std::lock_guard guard(ddl_mutex_);
  if (altered->is_dropped()) return no_table();
  Status changed = altered->table_columns().change_type(column, type);
  // Calls that found the column before may still write what belongs to its former edition.
  altered->note_readers_of_replaced(slots_->advance());
  return changed;
}

}  // namespace flugs::engine
