#include "engine/database/schema_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "tables/catalog/schema_checks.h"
#include "tables/data/table_layout.h"

namespace flugs::engine {

namespace {

void replace_name(std::vector<std::string>& names, const std::string& from, const std::string& to) {
  std::replace(names.begin(), names.end(), from, to);
}

Condition renamed(const Condition& condition, const std::string& from, const std::string& to) {
  std::vector<Condition::Node> nodes = condition.nodes();
  for (Condition::Node& node : nodes) {
    if (node.column == from) node.column = to;
    if (node.other == from) node.other = to;
  }
  return Condition::of(std::move(nodes));
}

Status taken(const std::string& table, const char* what, const std::string& name) {
  return Status(StatusCode::kAlreadyExists, SchemaPart::of(table),
                fmt::format("{} '{}' exists", what, name));
}

}  // namespace

// Updates the foreign keys of other tables that name this table, or a key of it.
void SchemaChanges::name_referrers(const Table& parent) {
  if (parent.references().referrers() == nullptr) return;
  for (const ForeignKey* foreign : *parent.references().referrers()) {
    FLUGS_DCHECK(&foreign->parent == &parent);
    foreign->child.references().name_parents();
  }
}

Status SchemaChanges::rename_table(TableId id, const std::string& name) {
  if (Status s = check_name("table", name); !s.ok()) return s;
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* renamed = catalog_.table(id);
  if (renamed == nullptr) return no_table();
  if (renamed->name() == name) return {};
  for (const auto& other : catalog_.all())
    if (!other->is_gone() && other->name() == name)
      return Status(StatusCode::kAlreadyExists, fmt::format("table {} exists", name))
          .with_part(SchemaPart::of(name));
  StoredSchema next = renamed->table_columns().stored();
  for (ForeignKeySchema& foreign : next.schema.foreign_keys)
    if (foreign.referenced.table == id) foreign.table = name;
  next.schema.name = name;
  if (Status s = renamed->table_columns().alter(std::move(next)); !s.ok()) return s;
  name_referrers(*renamed);
  return {};
}

Status SchemaChanges::rename_column(TableId id, ColumnId column, const std::string& name) {
  if (Status s = check_name("column", name); !s.ok()) return s;
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  StoredSchema next = altered->table_columns().stored();
  TableSchema& schema = next.schema;
  if (column.value() >= schema.columns.size())
    return Status(StatusCode::kNotFound, SchemaPart::of(schema.name),
                  fmt::format("no column {}", column.value()));
  const std::string before = schema.columns[column.value()].name;
  if (before == name) return {};
  if (position_of(schema, name) != schema.columns.size()) return taken(schema.name, "column", name);
  schema.columns[column.value()].name = name;
  for (KeySchema& key : schema.keys) replace_name(key.columns, before, name);
  for (std::vector<std::string>& group : schema.column_groups) replace_name(group, before, name);
  for (ForeignKeySchema& foreign : schema.foreign_keys) replace_name(foreign.columns, before, name);
  for (CheckSchema& check : schema.checks) check.condition = renamed(check.condition, before, name);
  return altered->table_columns().alter(std::move(next), [&] {
    std::optional<CheckSchema>& pending = altered->data().pending.check;
    if (pending.has_value()) pending->condition = renamed(pending->condition, before, name);
  });
}

Status SchemaChanges::rename_key(KeyId key, const std::string& name) {
  if (Status s = check_name("key", name); !s.ok()) return s;
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(key.table);
  if (altered == nullptr) return no_table();
  StoredSchema next = altered->table_columns().stored();
  TableSchema& schema = next.schema;
  if (key.index >= schema.keys.size() || schema.keys[key.index].dropped)
    return Status(StatusCode::kNotFound, SchemaPart::of(schema.name),
                  fmt::format("no key {}", key.index));
  if (schema.keys[key.index].name == name) return {};
  for (const KeySchema& other : schema.keys)
    if (other.name == name) return taken(schema.name, "key", name);
  schema.keys[key.index].name = name;
  for (ForeignKeySchema& foreign : schema.foreign_keys)
    if (foreign.referenced == key) foreign.key = name;
  if (Status s = altered->table_columns().alter(std::move(next)); !s.ok()) return s;
  name_referrers(*altered);
  return {};
}

Result<ColumnId> SchemaChanges::add_column(TableId id, const ColumnSchema& column) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  return altered->table_columns().add_column(column, threads_.hint_tail_max());
}

Status SchemaChanges::drop_column(TableId id, ColumnId column) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  return altered->table_columns().drop_column(column);
}

// Chunks that exist keep their shape. A chunk of the former shape that is begun meanwhile is as
// good as those.
Status SchemaChanges::set_delta_layout(TableId id, DeltaLayout layout,
                                       std::vector<std::vector<std::string>> column_groups) {
  const std::lock_guard guard(catalog_.ddl_mutex());
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  StoredSchema next = altered->table_columns().stored();
  if (next.schema.delta_layout == layout && next.schema.column_groups == column_groups) return {};
  next.schema.delta_layout = layout;
  next.schema.column_groups = std::move(column_groups);
  if (Status s = check_delta_layout(next.schema); !s.ok()) return s;
  if (Status s = altered->table_columns().check_widest_row(next.schema); !s.ok()) return s;
  if (Status s = altered->table_columns().alter(std::move(next)); !s.ok()) return s;
  altered->data().rows.layouts().set_shape(delta_shape_of(altered->schema()));
  return {};
}

// Holds off merges: a merge writes its groups for the columns that it finds when it begins.
Status SchemaChanges::change_type(TableId id, ColumnId column, Type type) {
  Table* altered = catalog_.table(id);
  if (altered == nullptr) return no_table();
  const std::lock_guard no_merge(altered->merge_mutex());
  const std::lock_guard guard(catalog_.ddl_mutex());
  if (altered->is_dropped()) return no_table();
  Status changed = altered->table_columns().change_type(column, type);
  // Calls that found the column before may still write what belongs to its former edition.
  altered->note_readers_of_replaced(transactions_.slots().advance());
  return changed;
}

}  // namespace flugs::engine
