#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bindings/duckdb/handles.h"
#include "flugs/database.h"

namespace flugs::duckdb {

/// An argument of a call that is being bound; nothing for NULL. Fails if there is no parameter of
/// the name.
Result<std::optional<std::string>> text_argument(duckdb_v2_function_bind_info_handle call,
                                                 std::string_view name);
Result<bool> bool_argument(duckdb_v2_function_bind_info_handle call, std::string_view name);
Result<std::uint64_t> number_argument(duckdb_v2_function_bind_info_handle call,
                                      std::string_view name);
/// The argument `pool`. Fails with kInvalidArgument for NULL.
Result<std::string> pool_argument(duckdb_v2_function_bind_info_handle call);

/// Fails if DuckDB's setting enable_external_access forbids to open files.
Status check_access(duckdb_v2_context_handle context);

/// Adds a parameter whose type is given as in SQL. `optional`: its default is NULL.
Status add_parameter(duckdb_v2_factory_handle factory,
                     duckdb_v2_function_signature_handle signature, std::string_view name,
                     std::string_view type, DUCKDB_V2_FUNCTION_PARAMETER_KIND kind, bool optional);

/// The table of this name; without a name the only one. Fails with kNotFound, and a list of the
/// tables.
Result<Table> choose_table(const Database& database, const std::string& pool,
                           const std::optional<std::string>& name);

}  // namespace flugs::duckdb
