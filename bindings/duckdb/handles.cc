#include "bindings/duckdb/handles.h"

namespace flugs::duckdb {

Result<duckdb_v2_factory_handle> factory_of(duckdb_v2_context_handle context) {
  duckdb_v2_factory_handle factory = nullptr;
  FLUGS_TRY(ask(duckdb_v2_context_get_factory, context, &factory));
  return factory;
}

Result<OwnedType> make_type(duckdb_v2_factory_handle factory, std::string_view name) {
  OwnedType type;
  const duckdb_v2_str text = str_of(name);
  FLUGS_TRY(ask(duckdb_v2_factory_create_type_from_text, factory, &text, type.out()));
  return type;
}

Result<OwnedValue> make_text(duckdb_v2_factory_handle factory, std::string_view text) {
  OwnedValue value;
  const duckdb_v2_str view = str_of(text);
  FLUGS_TRY(ask(duckdb_v2_value_create_varchar, factory, &view, value.out()));
  return value;
}

Result<bool> is_null(duckdb_v2_value_handle value) {
  bool null = false;
  FLUGS_TRY(ask(duckdb_v2_value_is_null, value, &null));
  return null;
}

Result<std::string> text_of(duckdb_v2_value_handle value) {
  duckdb_v2_str text = {nullptr, 0};
  FLUGS_TRY(ask(duckdb_v2_value_get_varchar, value, &text));
  return std::string(view_of(text));
}

Result<std::string> name_of(duckdb_v2_logical_type_handle type) {
  idx_t length = 0;
  FLUGS_TRY(
      ask(duckdb_v2_logical_type_to_text, type, static_cast<char*>(nullptr), idx_t{0}, &length));
  std::string text(length + 1, '\0');
  FLUGS_TRY(ask(duckdb_v2_logical_type_to_text, type, text.data(), idx_t{text.size()}, &length));
  text.resize(length);
  return text;
}

}  // namespace flugs::duckdb
