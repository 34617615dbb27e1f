#include "bindings/duckdb/arguments.h"

namespace flugs::duckdb {

namespace {

Result<OwnedValue> argument(duckdb_v2_function_bind_info_handle call, std::string_view name) {
  const duckdb_v2_identifier_t wanted = str_of(name);
  idx_t index = 0;
  bool found = false;
  FLUGS_TRY(ask(duckdb_v2_function_bind_get_arg_index, call, &wanted, &index, &found));
  if (!found)
    return Status(StatusCode::kInvalidArgument, "there is no argument " + std::string(name));
  OwnedValue value;
  FLUGS_TRY(ask(duckdb_v2_function_bind_get_arg_value, call, index, value.out()));
  return value;
}

std::string list_of_tables(const Database& database) {
  std::string list;
  for (const TableId id : database.tables()) {
    const Result<TableSchema> schema = database.schema(id);
    if (schema.ok()) list += (list.empty() ? "" : ", ") + schema->name;
  }
  return list;
}

}  // namespace

Result<std::optional<std::string>> text_argument(duckdb_v2_function_bind_info_handle call,
                                                 std::string_view name) {
  FLUGS_ASSIGN(const OwnedValue value, argument(call, name));
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  if (null) return std::optional<std::string>();
  FLUGS_ASSIGN(std::string text, text_of(value.get()));
  return std::optional<std::string>(std::move(text));
}

Result<bool> bool_argument(duckdb_v2_function_bind_info_handle call, std::string_view name) {
  FLUGS_ASSIGN(const OwnedValue value, argument(call, name));
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  bool set = false;
  if (!null) FLUGS_TRY(ask(duckdb_v2_value_get_bool, value.get(), &set));
  return set;
}

Result<std::uint64_t> number_argument(duckdb_v2_function_bind_info_handle call,
                                      std::string_view name) {
  FLUGS_ASSIGN(const OwnedValue value, argument(call, name));
  FLUGS_ASSIGN(const bool null, is_null(value.get()));
  std::uint64_t number = 0;
  if (!null) FLUGS_TRY(ask(duckdb_v2_value_get_ubigint, value.get(), &number));
  return number;
}

Result<std::string> pool_argument(duckdb_v2_function_bind_info_handle call) {
  FLUGS_ASSIGN(std::optional<std::string> path, text_argument(call, "pool"));
  if (!path) return Status(StatusCode::kInvalidArgument, "the path of the pool is NULL");
  return *std::move(path);
}

Status check_access(duckdb_v2_context_handle context) {
  duckdb_v2_config_handle config = nullptr;
  FLUGS_TRY(ask(duckdb_v2_context_get_config, context, &config));
  const duckdb_v2_identifier_t name = str_of("enable_external_access");
  OwnedValue value;
  DUCKDB_V2_SETTING_SCOPE scope{};
  FLUGS_TRY(ask(duckdb_v2_config_get_option_value, config, &name, value.out(), &scope));
  bool enabled = false;
  FLUGS_TRY(ask(duckdb_v2_value_get_bool, value.get(), &enabled));
  if (enabled) return {};
  return Status(StatusCode::kInvalidArgument,
                "the setting enable_external_access of DuckDB forbids to open a pool");
}

Status add_parameter(duckdb_v2_factory_handle factory,
                     duckdb_v2_function_signature_handle signature, std::string_view name,
                     std::string_view type, DUCKDB_V2_FUNCTION_PARAMETER_KIND kind, bool optional) {
  FLUGS_ASSIGN(const OwnedType parameter, make_type(factory, type));
  OwnedValue otherwise;
  if (optional)
    FLUGS_TRY(ask(duckdb_v2_value_create_null, factory, parameter.get(), otherwise.out()));
  const duckdb_v2_identifier_t called = str_of(name);
  return ask(duckdb_v2_function_signature_add_parameter, signature, &called, parameter.get(),
             otherwise.get(), kind);
}

Result<Table> choose_table(const Database& database, const std::string& pool,
                           const std::optional<std::string>& name) {
  if (name) {
    Result<Table> table = database.table(*name);
    if (table.code() != StatusCode::kNotFound) return table;
    return Status(StatusCode::kNotFound,
                  pool + " has no table " + *name + "; it has: " + list_of_tables(database));
  }
  const std::vector<TableId> tables = database.tables();
  if (tables.empty()) return Status(StatusCode::kNotFound, pool + " has no table");
  if (tables.size() > 1)
    return Status(StatusCode::kNotFound, pool + " has several tables, write '" + pool +
                                             "/TABLE' or flugs_scan('" + pool +
                                             "', 'TABLE') for one of: " + list_of_tables(database));
  FLUGS_ASSIGN(TableSchema schema, database.schema(tables.front()));
  return Table(tables.front(), std::move(schema));
}

}  // namespace flugs::duckdb
