#pragma once

#include <cstdint>

// The functions of DuckDB's C interface that we call. The package with its library has no header.

extern "C" {

using duckdb_database = struct _duckdb_database*;
using duckdb_connection = struct _duckdb_connection*;
using duckdb_prepared_statement = struct _duckdb_prepared_statement*;
using duckdb_appender = struct _duckdb_appender*;
using duckdb_data_chunk = struct _duckdb_data_chunk*;
using duckdb_vector = struct _duckdb_vector*;
using duckdb_config = struct _duckdb_config*;

/// Six words of its own; passed by value in one place.
struct duckdb_result {
  void* words[6];
};

/// 0: success.
using duckdb_state = int;

// The values of its enumerations that we use: a column's type, and the kind of a result.
inline constexpr int kDuckdbInteger = 4;
inline constexpr int kDuckdbBigint = 5;
inline constexpr int kDuckdbChangedRows = 1;

const char* duckdb_library_version();
duckdb_state duckdb_open_ext(const char* path, duckdb_database* out, duckdb_config config,
                             char** error);
void duckdb_close(duckdb_database* database);
duckdb_state duckdb_connect(duckdb_database database, duckdb_connection* out);
void duckdb_disconnect(duckdb_connection* connection);
void duckdb_free(void* pointer);

duckdb_state duckdb_query(duckdb_connection connection, const char* query, duckdb_result* out);
const char* duckdb_result_error(duckdb_result* result);
void duckdb_destroy_result(duckdb_result* result);
int duckdb_result_return_type(duckdb_result result);
std::uint64_t duckdb_rows_changed(duckdb_result* result);
int duckdb_column_type(duckdb_result* result, std::uint64_t column);
duckdb_data_chunk duckdb_fetch_chunk(duckdb_result result);
std::uint64_t duckdb_data_chunk_get_size(duckdb_data_chunk chunk);
duckdb_vector duckdb_data_chunk_get_vector(duckdb_data_chunk chunk, std::uint64_t column);
void* duckdb_vector_get_data(duckdb_vector vector);
void duckdb_destroy_data_chunk(duckdb_data_chunk* chunk);

duckdb_state duckdb_prepare(duckdb_connection connection, const char* query,
                            duckdb_prepared_statement* out);
void duckdb_destroy_prepare(duckdb_prepared_statement* statement);
int duckdb_param_type(duckdb_prepared_statement statement, std::uint64_t index);
duckdb_state duckdb_bind_int32(duckdb_prepared_statement statement, std::uint64_t index,
                               std::int32_t value);
duckdb_state duckdb_bind_int64(duckdb_prepared_statement statement, std::uint64_t index,
                               std::int64_t value);
duckdb_state duckdb_bind_varchar_length(duckdb_prepared_statement statement, std::uint64_t index,
                                        const char* value, std::uint64_t bytes);
duckdb_state duckdb_execute_prepared(duckdb_prepared_statement statement, duckdb_result* out);

duckdb_state duckdb_appender_create(duckdb_connection connection, const char* schema,
                                    const char* table, duckdb_appender* out);
duckdb_state duckdb_append_int32(duckdb_appender appender, std::int32_t value);
duckdb_state duckdb_append_int64(duckdb_appender appender, std::int64_t value);
duckdb_state duckdb_append_varchar_length(duckdb_appender appender, const char* value,
                                          std::uint64_t bytes);
duckdb_state duckdb_appender_end_row(duckdb_appender appender);
duckdb_state duckdb_appender_destroy(duckdb_appender* appender);

}  // extern "C"
