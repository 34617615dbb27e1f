#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "flugs/status.h"
#include "tools/peers/engines/duckdb_api.h"

namespace flugs::tools {

inline Status duckdb_failure(const std::string& what) {
  return Status(StatusCode::kIoError, "DuckDB: " + what);
}

/// A result, which is freed with it.
class DuckdbResult {
 public:
  DuckdbResult() = default;
  DuckdbResult(const DuckdbResult&) = delete;
  DuckdbResult& operator=(const DuckdbResult&) = delete;
  ~DuckdbResult() { duckdb_destroy_result(&result_); }

  duckdb_result* get() { return &result_; }
  Status status(duckdb_state state) {
    return state == 0 ? Status() : duckdb_failure(duckdb_result_error(&result_));
  }

 private:
  duckdb_result result_{};
};

class DuckdbConnection {
 public:
  DuckdbConnection() = default;
  DuckdbConnection(DuckdbConnection&& other) noexcept
      : connection_(std::exchange(other.connection_, nullptr)) {}
  DuckdbConnection& operator=(DuckdbConnection&&) = delete;
  ~DuckdbConnection() { duckdb_disconnect(&connection_); }

  Status connect(duckdb_database database) {
    return duckdb_connect(database, &connection_) == 0 ? Status()
                                                       : duckdb_failure("cannot connect");
  }
  Status execute(const char* sql) {
    DuckdbResult result;
    return result.status(duckdb_query(connection_, sql, result.get()));
  }
  duckdb_connection get() const { return connection_; }

 private:
  duckdb_connection connection_ = nullptr;
};

class DuckdbStatement {
 public:
  DuckdbStatement() = default;
  DuckdbStatement(const DuckdbStatement&) = delete;
  DuckdbStatement& operator=(const DuckdbStatement&) = delete;
  ~DuckdbStatement() { duckdb_destroy_prepare(&statement_); }

  /// Once.
  Status prepare(const DuckdbConnection& connection, const std::string& sql) {
    if (statement_ != nullptr) return {};
    return duckdb_prepare(connection.get(), sql.c_str(), &statement_) == 0
               ? Status()
               : duckdb_failure("cannot prepare " + sql);
  }
  int parameter_type(std::uint64_t index) const { return duckdb_param_type(statement_, index); }
  void bind(std::uint64_t index, std::int64_t value) {
    duckdb_bind_int64(statement_, index, value);
  }
  void bind(std::uint64_t index, std::int32_t value) {
    duckdb_bind_int32(statement_, index, value);
  }
  void bind(std::uint64_t index, std::string_view value) {
    duckdb_bind_varchar_length(statement_, index, value.data(), value.size());
  }
  Status execute(DuckdbResult& result) {
    return result.status(duckdb_execute_prepared(statement_, result.get()));
  }

 private:
  duckdb_prepared_statement statement_ = nullptr;
};

}  // namespace flugs::tools
