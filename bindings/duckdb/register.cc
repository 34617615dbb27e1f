#include "bindings/duckdb/register.h"

#include "bindings/duckdb/arguments.h"
#include "bindings/duckdb/scan.h"

namespace flugs::duckdb {

namespace {

struct DestroyMacro {
  void operator()(duckdb_v2_macro_function_handle* h) const noexcept {
    duckdb_v2_macro_function_destroy(h);
  }
};

constexpr std::string_view kScan =
    "FROM query(flugs_scan_text(pool, \"table\", read_only, current_query_id()))";

}  // namespace

Result<OwnedFunction> make_function(duckdb_v2_factory_handle factory, std::string_view name,
                                    const SharedInstance& instance) {
  OwnedFunction function;
  FLUGS_TRY(ask(duckdb_v2_table_function_create, factory, function.out()));
  const duckdb_v2_identifier_t called = str_of(name);
  FLUGS_TRY(ask(duckdb_v2_table_function_set_name, function.get(), &called));
  duckdb_v2_opaque share = share_of(instance);
  FLUGS_TRY(ask(duckdb_v2_table_function_set_user_data, function.get(), &share));
  return function;
}

Status register_macro(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                      std::string_view name, std::string_view body,
                      std::initializer_list<std::pair<std::string_view, bool>> parameters) {
  Owned<duckdb_v2_macro_function_handle, DestroyMacro> macro;
  FLUGS_TRY(ask(duckdb_v2_macro_function_create, factory, DUCKDB_V2_MACRO_FUNCTION_TYPE_TABLE,
                macro.out()));
  const duckdb_v2_identifier_t called = str_of(name);
  FLUGS_TRY(ask(duckdb_v2_macro_function_set_name, macro.get(), &called));
  const duckdb_v2_str text = str_of(body);
  FLUGS_TRY(ask(duckdb_v2_macro_function_set_body, macro.get(), &text));
  duckdb_v2_function_signature_handle signature = nullptr;
  FLUGS_TRY(ask(duckdb_v2_macro_function_get_signature, macro.get(), &signature));
  for (const auto& [parameter, optional] : parameters)
    FLUGS_TRY(add_parameter(factory, signature, parameter,
                            parameter == "read_only" ? "BOOLEAN" : "VARCHAR",
                            DUCKDB_V2_FUNCTION_PARAMETER_KIND_STANDARD, optional));
  return ask(duckdb_v2_extension_register_macro_function, extension, macro.get());
}

Status register_scan(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                     const SharedInstance& instance) {
  FLUGS_ASSIGN(const OwnedFunction made, make_function(factory, "flugs_scan_once", instance));
  const duckdb_v2_table_function_handle scan = made.get();
  duckdb_v2_function_signature_handle signature = nullptr;
  FLUGS_TRY(ask(duckdb_v2_table_function_get_signature, scan, &signature));
  constexpr std::pair<std::string_view, std::string_view> kParameters[] = {
      {"pool", "VARCHAR"},       {"table", "VARCHAR"},     {"read_only", "BOOLEAN"},
      {"reference", "UBIGINT"},  {"statement", "UBIGINT"}, {"rows", "UBIGINT"},
      {"definition", "UBIGINT"},
  };
  for (const auto& [name, type] : kParameters)
    FLUGS_TRY(add_parameter(factory, signature, name, type,
                            DUCKDB_V2_FUNCTION_PARAMETER_KIND_NAMED_ONLY, true));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_bind_callback, scan, &bind_scan));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_filter_pushdown_callback, scan, &push_filters));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_init_global_callback, scan, &begin_scan));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_init_local_callback, scan, &begin_thread));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_exec_callback, scan, &run_scan));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_progress_callback, scan, &tell_progress));
  FLUGS_TRY(ask(duckdb_v2_table_function_set_projection_pushdown, scan, true));
  FLUGS_TRY(ask(duckdb_v2_extension_register_table_function, extension, scan));
  FLUGS_TRY(register_scan_text(extension, factory, instance));
  return register_macro(extension, factory, "flugs_scan", kScan,
                        {{"pool", false}, {"table", true}, {"read_only", true}});
}

}  // namespace flugs::duckdb
