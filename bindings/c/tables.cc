#include <algorithm>

#include "bindings/c/database.h"
#include "bindings/c/json.h"
#include "bindings/c/statistics.h"
#include "flugs/arrow_export.h"
#include "flugs/query.h"

namespace flugs::c {

namespace {

void add_names(Json& json, const char* field, const std::vector<std::string>& names) {
  json.key(field).begin_list();
  for (const std::string& name : names) json.text(name);
  json.end_list();
}

void add_column(Json& json, const ColumnSchema& column) {
  json.begin_object();
  json.field("name", column.name);
  json.field("type", to_string(column.type));
  json.field("nullable", column.nullable);
  if (column.type == Type::kDecimal) json.field("scale", column.scale);
  json.field("encoding", column.encoding == Encoding::kDirect       ? "direct"
                         : column.encoding == Encoding::kDictionary ? "dictionary"
                                                                    : "auto");
  if (column.default_value) json.field("default", column.default_value->to_string());
  if (column.auto_increment) json.field("auto_increment", true);
  if (column.dropped) json.field("dropped", true);
  json.end_object();
}

void add_key(Json& json, const KeySchema& key) {
  json.begin_object();
  json.field("name", key.name);
  add_names(json, "columns", key.columns);
  json.field("unique", key.unique);
  json.field("ordered", key.ordered);
  json.field("hashed_columns", key.hashed_columns);
  if (key.dropped) json.field("dropped", true);
  json.end_object();
}

void add_foreign_key(Json& json, const ForeignKeySchema& key) {
  json.begin_object();
  json.field("name", key.name);
  add_names(json, "columns", key.columns);
  json.field("table", key.table);
  json.field("key", key.key);
  json.field("on_delete", to_string(key.on_delete));
  json.field("on_update", to_string(key.on_update));
  json.end_object();
}

}  // namespace

std::string json_of(const TableSchema& schema) {
  Json json;
  json.begin_object();
  json.field("name", schema.name);
  json.key("columns").begin_list();
  for (const ColumnSchema& column : schema.columns) add_column(json, column);
  json.end_list();
  json.field("has_primary_key", schema.has_primary_key);
  json.field("delta_layout", to_string(schema.delta_layout));
  json.key("column_groups").begin_list();
  for (const std::vector<std::string>& group : schema.column_groups) {
    json.begin_list();
    for (const std::string& column : group) json.text(column);
    json.end_list();
  }
  json.end_list();
  json.key("keys").begin_list();
  for (const KeySchema& key : schema.keys) add_key(json, key);
  json.end_list();
  json.key("checks").begin_list();
  for (const CheckSchema& check : schema.checks) {
    json.begin_object();
    json.field("name", check.name);
    json.field("condition", check.condition.to_string());
    json.end_object();
  }
  json.end_list();
  json.key("foreign_keys").begin_list();
  for (const ForeignKeySchema& key : schema.foreign_keys) add_foreign_key(json, key);
  json.end_list();
  json.end_object();
  return json.take();
}

}  // namespace flugs::c

using flugs::c::no_pointer;
using flugs::c::to_c;
using flugs::c::with_database;

extern "C" {

flugs_error* flugs_table_drop(flugs_database* database, uint32_t table) {
  return with_database(database, [&](flugs::Database& core) {
    const flugs::TableId id(table);
    const flugs::c::About what = flugs::c::about(core, id);
    return to_c(core.drop_table(id), what);
  });
}

flugs_error* flugs_table_set_delta_layout(flugs_database* database, uint32_t table,
                                          flugs_delta_layout layout) {
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (layout < FLUGS_DELTA_ROWS || layout > FLUGS_DELTA_COLUMNS)
      return flugs::c::misuse("layout: no such number");
    const flugs::TableId id(table);
    return to_c(core.set_delta_layout(id, static_cast<flugs::DeltaLayout>(layout)),
                flugs::c::about(core, id));
  });
}

flugs_error* flugs_table_set_column_groups(flugs_database* database, uint32_t table,
                                           const flugs_schema* groups) {
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (!flugs::c::is_handle(groups)) return flugs::c::no_handle("groups");
    const flugs::TableId id(table);
    return to_c(core.set_delta_layout(id, flugs::DeltaLayout::kColumns, groups->core.column_groups),
                flugs::c::about(core, id));
  });
}

flugs_error* flugs_table_find(flugs_database* database, const char* name, uint32_t* out) {
  if (out != nullptr) *out = 0;
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (name == nullptr) return no_pointer("name");
    if (out == nullptr) return no_pointer("out");
    const flugs::Result<flugs::TableId> table = core.find_table(name);
    if (!table.ok()) return to_c(table.status(), {name, {}});
    *out = table->value();
    return nullptr;
  });
}

flugs_error* flugs_table_list(flugs_database* database, uint32_t* tables, size_t capacity,
                              size_t* out) {
  if (out != nullptr) *out = 0;
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    if (tables == nullptr && capacity > 0) return no_pointer("tables");
    const std::vector<flugs::TableId> all = core.tables();
    for (std::size_t i = 0; i < std::min(capacity, all.size()); ++i) tables[i] = all[i].value();
    *out = all.size();
    return nullptr;
  });
}

flugs_error* flugs_table_describe(flugs_database* database, uint32_t table, char** out) {
  if (out != nullptr) *out = nullptr;
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    const flugs::Result<flugs::TableSchema> schema = core.schema(flugs::TableId(table));
    if (!schema.ok()) return to_c(schema.status());
    *out = flugs::c::copy_of(flugs::c::json_of(*schema));
    return nullptr;
  });
}

flugs_error* flugs_table_arrow_schema(flugs_database* database, uint32_t table,
                                      struct ArrowSchema* out) {
  if (out != nullptr) *out = {};
  return with_database(database, [&](flugs::Database& core) -> flugs_error* {
    if (out == nullptr) return no_pointer("out");
    const flugs::Result<flugs::TableSchema> schema = core.schema(flugs::TableId(table));
    if (!schema.ok()) return to_c(schema.status());
    const flugs::Result<flugs::Transaction> transaction = core.begin(flugs::AccessMode::kReadOnly);
    if (!transaction.ok()) return to_c(transaction.status());
    const flugs::Result<flugs::query::ResultStream> stream =
        flugs::query::Query::table(schema->name).stream(*transaction);
    if (!stream.ok()) return to_c(stream.status(), {schema->name, {}});
    flugs::query::schema_to_arrow(*stream, *out);
    return nullptr;
  });
}
}
