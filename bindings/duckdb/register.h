#pragma once

#include "bindings/duckdb/instance.h"

namespace flugs::duckdb {

/// A table function that is being made.
struct DestroyFunction {
  void operator()(duckdb_v2_table_function_handle* h) const noexcept {
    duckdb_v2_table_function_destroy(h);
  }
};
using OwnedFunction = Owned<duckdb_v2_table_function_handle, DestroyFunction>;

/// A table function with a name and a share of the instance as user data.
Result<OwnedFunction> make_function(duckdb_v2_factory_handle factory, std::string_view name,
                                    const SharedInstance& instance);
/// Registers what flugs_scan, which is a macro, calls.
Status register_scan_text(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                          const SharedInstance& instance);
/// Makes a function that is called `FROM name(...)` and reads `body`, a SELECT. Parameters are
/// pairs of a name and whether it may be left out.
Status register_macro(duckdb_v2_extension_handle extension, duckdb_v2_factory_handle factory,
                      std::string_view name, std::string_view body,
                      std::initializer_list<std::pair<std::string_view, bool>> parameters);

}  // namespace flugs::duckdb
