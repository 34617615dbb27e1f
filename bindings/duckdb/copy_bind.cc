// COPY ... TO 'x.pool/table' (FORMAT flugs): options and types.

#include <algorithm>
#include <utility>

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/copy.h"
#include "bindings/duckdb/names.h"

namespace flugs::duckdb {

namespace {

struct CopyType {
  DUCKDB_V2_LOGICAL_TYPE_ID id;
  Type type;
  ArrayForm form;
};

// Decimals are not here: their form depends on their width.
constexpr CopyType kCopyTypes[] = {
    {DUCKDB_V2_LOGICAL_TYPE_ID_BOOLEAN, Type::kBool, ArrayForm::kBits},
    {DUCKDB_V2_LOGICAL_TYPE_ID_TINYINT, Type::kInt32, ArrayForm::kInt8},
    {DUCKDB_V2_LOGICAL_TYPE_ID_UTINYINT, Type::kInt32, ArrayForm::kUint8},
    {DUCKDB_V2_LOGICAL_TYPE_ID_SMALLINT, Type::kInt32, ArrayForm::kInt16},
    {DUCKDB_V2_LOGICAL_TYPE_ID_USMALLINT, Type::kInt32, ArrayForm::kUint16},
    {DUCKDB_V2_LOGICAL_TYPE_ID_INTEGER, Type::kInt32, ArrayForm::kInt32},
    {DUCKDB_V2_LOGICAL_TYPE_ID_UINTEGER, Type::kInt64, ArrayForm::kUint32},
    {DUCKDB_V2_LOGICAL_TYPE_ID_BIGINT, Type::kInt64, ArrayForm::kInt64},
    {DUCKDB_V2_LOGICAL_TYPE_ID_FLOAT, Type::kDouble, ArrayForm::kFloat},
    {DUCKDB_V2_LOGICAL_TYPE_ID_DOUBLE, Type::kDouble, ArrayForm::kDouble},
    {DUCKDB_V2_LOGICAL_TYPE_ID_DATE, Type::kDate, ArrayForm::kInt32},
    {DUCKDB_V2_LOGICAL_TYPE_ID_TIMESTAMP, Type::kTimestamp, ArrayForm::kInt64},
    {DUCKDB_V2_LOGICAL_TYPE_ID_TIMESTAMP_TZ, Type::kTimestamp, ArrayForm::kInt64},
    {DUCKDB_V2_LOGICAL_TYPE_ID_VARCHAR, Type::kString, ArrayForm::kText64},
    {DUCKDB_V2_LOGICAL_TYPE_ID_BLOB, Type::kBytes, ArrayForm::kText64},
};

Result<std::uint8_t> type_parameter(duckdb_v2_logical_type_handle type, idx_t index) {
  duckdb_v2_identifier_t name = {nullptr, 0};
  OwnedValue value;
  FLUGS_TRY(ask(duckdb_v2_logical_type_get_param, type, index, &name, value.out()));
  std::uint8_t number = 0;
  FLUGS_TRY(ask(duckdb_v2_value_get_utinyint, value.get(), &number));
  return number;
}

// Digits that DuckDB keeps in 2, 4 and 8 bytes.
ArrayForm form_of_decimal(std::uint8_t width) noexcept {
  if (width <= 4) return ArrayForm::kInt16;
  if (width <= 9) return ArrayForm::kInt32;
  return width <= 18 ? ArrayForm::kInt64 : ArrayForm::kInt128;
}

// The names in 'a, b'.
std::vector<std::string> split_names(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    std::string_view name = list.substr(0, comma);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty()) names.emplace_back(name);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return names;
}

Result<std::string> value_as_text(duckdb_v2_factory_handle factory, duckdb_v2_value_handle value,
                                  std::string_view type) {
  FLUGS_ASSIGN(const OwnedType wanted, make_type(factory, type));
  OwnedValue cast;
  FLUGS_TRY(ask(duckdb_v2_value_cast, factory, value, wanted.get(), cast.out()));
  FLUGS_ASSIGN(const OwnedType text, make_type(factory, "VARCHAR"));
  OwnedValue as_text;
  FLUGS_TRY(ask(duckdb_v2_value_cast, factory, cast.get(), text.get(), as_text.out()));
  return text_of(as_text.get());
}

Result<std::uint64_t> value_as_number(duckdb_v2_factory_handle factory,
                                      duckdb_v2_value_handle value) {
  FLUGS_ASSIGN(const std::string text, value_as_text(factory, value, "UBIGINT"));
  return std::uint64_t{std::stoull(text)};
}

// KEY 'a, b' is a text, and KEY (a, b) a list.
Result<std::vector<std::string>> key_names(duckdb_v2_factory_handle factory,
                                           duckdb_v2_value_handle value) {
  idx_t count = 0;
  if (duckdb_v2_value_get_child_count(value, &count, nullptr) != DUCKDB_V2_ERROR_NONE) count = 0;
  if (count == 0) {
    FLUGS_ASSIGN(const std::string list, value_as_text(factory, value, "VARCHAR"));
    return split_names(list);
  }
  std::vector<std::string> names;
  for (idx_t i = 0; i < count; ++i) {
    OwnedValue child;
    FLUGS_TRY(ask(duckdb_v2_value_get_child, value, i, child.out()));
    FLUGS_ASSIGN(std::string name, value_as_text(factory, child.get(), "VARCHAR"));
    names.push_back(std::move(name));
  }
  return names;
}

Status read_option(duckdb_v2_factory_handle factory, const std::string& name,
                   duckdb_v2_value_handle value, CopyBind& bind) {
  if (name == "key") {
    FLUGS_ASSIGN(bind.key, key_names(factory, value));
    if (bind.key.empty())
      return Status(StatusCode::kInvalidArgument, "COPY: KEY names no column; write KEY 'a, b'");
  } else if (name == "max_bytes") {
    FLUGS_ASSIGN(bind.max_bytes, value_as_number(factory, value));
  } else if (name == "commit_rows") {
    FLUGS_ASSIGN(bind.commit_rows, value_as_number(factory, value));
  } else if (name == "merge") {
    FLUGS_ASSIGN(const std::string merge, value_as_text(factory, value, "BOOLEAN"));
    bind.is_merged = merge == "true";
  } else {
    return Status(
        StatusCode::kInvalidArgument,
        "COPY has no option " + name + " for flugs; it has key, commit_rows, max_bytes, merge");
  }
  return {};
}

Status read_options(duckdb_v2_copy_to_bind_info_handle info, duckdb_v2_factory_handle factory,
                    CopyBind& bind) {
  idx_t count = 0;
  FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_option_count, info, &count));
  for (idx_t i = 0; i < count; ++i) {
    duckdb_v2_identifier_t name = {nullptr, 0};
    FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_option_name, info, i, &name));
    OwnedValue value;
    FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_option_value, info, i, value.out()));
    FLUGS_TRY(read_option(factory, lower_case(view_of(name)), value.get(), bind));
  }
  return {};
}

Status read_columns(duckdb_v2_copy_to_bind_info_handle info, CopyBind& bind) {
  idx_t count = 0;
  FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_column_count, info, &count));
  for (idx_t i = 0; i < count; ++i) {
    duckdb_v2_identifier_t name = {nullptr, 0};
    FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_column_name, info, i, &name));
    OwnedType type;
    FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_column_type, info, i, type.out()));
    FLUGS_ASSIGN(CopyColumn column, copy_column(std::string(view_of(name)), std::move(type)));
    bind.columns.push_back(std::move(column));
  }
  return {};
}

// TO 'x.pool' is refused, also for a new pool: when COPY fails, DuckDB removes the file.
Status read_target(duckdb_v2_copy_to_bind_info_handle info, CopyBind& bind) {
  duckdb_v2_str path = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_copy_to_bind_get_file_path, info, &path));
  bind.file = std::string(view_of(path));
  std::optional<PoolName> name = read_pool_name(bind.file);
  if (!name || !name->table)
    return Status(StatusCode::kInvalidArgument, "COPY needs a pool and a table: write TO '" +
                                                    (name ? name->path : std::string("x.pool")) +
                                                    "/TABLE'");
  bind.pool = std::move(name->path);
  bind.table = *std::move(name->table);
  return {};
}

}  // namespace

Result<CopyColumn> copy_column(std::string name, OwnedType type) {
  DUCKDB_V2_LOGICAL_TYPE_ID id = DUCKDB_V2_LOGICAL_TYPE_ID_INVALID;
  FLUGS_TRY(ask(duckdb_v2_logical_type_get_id, type.get(), &id));
  CopyColumn column;
  column.name = std::move(name);
  if (id == DUCKDB_V2_LOGICAL_TYPE_ID_DECIMAL) {
    FLUGS_ASSIGN(const std::uint8_t width, type_parameter(type.get(), 0));
    FLUGS_ASSIGN(column.scale, type_parameter(type.get(), 1));
    column.type = Type::kDecimal;
    column.form = form_of_decimal(width);
  } else {
    const auto* const found = std::find_if(std::begin(kCopyTypes), std::end(kCopyTypes),
                                           [&](const CopyType& of) { return of.id == id; });
    if (found == std::end(kCopyTypes)) {
      FLUGS_ASSIGN(const std::string called, name_of(type.get()));
      return Status(StatusCode::kInvalidArgument,
                    "column " + column.name + ": flugs has no type for " + called +
                        "; cast it to BIGINT, DOUBLE, DECIMAL, DATE, TIMESTAMP, VARCHAR or BLOB");
    }
    column.type = found->type;
    column.form = found->form;
  }
  column.duckdb_type = std::move(type);
  return column;
}

void bind_copy(duckdb_v2_copy_to_bind_info_handle info, duckdb_v2_context_handle context,
               duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    FLUGS_TRY(check_access(context));
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    FLUGS_ASSIGN(SharedInstance* const instance,
                 kept<SharedInstance>(duckdb_v2_copy_to_bind_get_user_data, info));
    auto bind = std::make_unique<CopyBind>();
    bind->instance = *instance;
    FLUGS_TRY(read_options(info, factory, *bind));
    FLUGS_TRY(read_target(info, *bind));
    FLUGS_TRY(read_columns(info, *bind));
    duckdb_v2_opaque data = opaque_of(bind.release());
    return ask(duckdb_v2_copy_to_bind_set_bind_data, info, &data);
  });
}

}  // namespace flugs::duckdb
