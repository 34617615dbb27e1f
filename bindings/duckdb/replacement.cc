// FROM 'x.pool' and FROM 'x.pool/table'.

#include <optional>
#include <string>
#include <utility>

#include "bindings/duckdb/handles.h"
#include "bindings/duckdb/instance.h"
#include "bindings/duckdb/names.h"

namespace flugs::duckdb {

namespace {

Status claim(duckdb_v2_replacement_scan_info_handle info, duckdb_v2_factory_handle factory,
             const PoolName& name) {
  OwnedName function;
  const duckdb_v2_identifier_t scan = str_of("flugs_scan");
  FLUGS_TRY(ask(duckdb_v2_qname_create, &scan, idx_t{1}, function.out()));
  FLUGS_TRY(ask(duckdb_v2_replacement_scan_set_function_name, info, function.get()));
  FLUGS_ASSIGN(const OwnedValue path, make_text(factory, name.path));
  FLUGS_TRY(ask(duckdb_v2_replacement_scan_add_argument, info, path.get()));
  // As DuckDB names a file: without folder and ending.
  const std::size_t slash = name.path.rfind('/');
  std::string alias = slash == std::string::npos ? name.path : name.path.substr(slash + 1);
  alias.resize(alias.size() - kPoolEnding.size());
  if (name.table) {
    FLUGS_ASSIGN(const OwnedValue table, make_text(factory, *name.table));
    FLUGS_TRY(ask(duckdb_v2_replacement_scan_add_argument, info, table.get()));
    alias = *name.table;
  }
  const duckdb_v2_identifier_t called = str_of(alias);
  return ask(duckdb_v2_replacement_scan_set_alias, info, &called);
}

void replace(duckdb_v2_replacement_scan_info_handle info, duckdb_v2_context_handle context,
             duckdb_v2_error_info_handle* err) {
  guarded(err, [&]() -> Status {
    OwnedName name;
    FLUGS_TRY(ask(duckdb_v2_replacement_scan_get_name, info, name.out()));
    idx_t parts = 0;
    FLUGS_TRY(ask(duckdb_v2_qname_get_part_count, name.get(), &parts));
    if (parts != 1) return {};
    duckdb_v2_identifier_t part = {nullptr, 0};
    FLUGS_TRY(ask(duckdb_v2_qname_get_part, name.get(), idx_t{0}, &part));
    const std::optional<PoolName> found = read_pool_name(view_of(part));
    if (!found) return {};
    FLUGS_ASSIGN(const duckdb_v2_factory_handle factory, factory_of(context));
    return claim(info, factory, *found);
  });
}

struct DestroyReplacement {
  void operator()(duckdb_v2_replacement_scan_handle* h) const noexcept {
    duckdb_v2_replacement_scan_destroy(h);
  }
};

}  // namespace

Status register_replacement(duckdb_v2_extension_handle extension,
                            duckdb_v2_factory_handle factory) {
  Owned<duckdb_v2_replacement_scan_handle, DestroyReplacement> scan;
  FLUGS_TRY(ask(duckdb_v2_replacement_scan_create, factory, scan.out()));
  FLUGS_TRY(ask(duckdb_v2_replacement_scan_set_callback, scan.get(), &replace));
  return ask(duckdb_v2_extension_register_replacement_scan, extension, scan.get());
}

}  // namespace flugs::duckdb
