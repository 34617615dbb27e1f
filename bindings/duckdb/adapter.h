#pragma once

struct duckdb_v2_extension_input;

namespace flugs::duckdb {

/// Registers all that the extension gives with the instance of DuckDB that loads it. If DuckDB has
/// another version than its headers, it calls no function of DuckDB's table, and DuckDB gets the
/// reason as an error.
///
/// Thread-safety: any thread. No exception leaves.
void start(duckdb_v2_extension_input* input) noexcept;

}  // namespace flugs::duckdb
