#include <array>
#include <cstring>
#include <utility>

#include "tools/peers/engines/duckdb_connection.h"
#include "tools/peers/restart/sql_store.h"

namespace flugs::tools {

namespace {

/// Tells failures apart by their messages: DuckDB gives nothing else.
Status status_of(Status status) {
  const std::string_view message = status.message();
  if (message.find("onflict") != std::string_view::npos) return Status(StatusCode::kConflict);
  if (message.find("uplicate key") != std::string_view::npos)
    return Status(StatusCode::kAlreadyExists);
  return status;
}

/// A string in a vector: up to 12 bytes lie in it.
struct DuckdbString {
  std::uint32_t bytes;
  char prefix[4];
  const char* rest;

  std::string_view text() const {
    constexpr std::uint32_t kInlineMax = 12;
    return {bytes <= kInlineMax ? prefix : rest, bytes};
  }
};
static_assert(sizeof(DuckdbString) == 16);

class ChunkRow : public SqlRow {
 public:
  ChunkRow(duckdb_result& result, duckdb_data_chunk chunk) : result_(result), chunk_(chunk) {}

  void go_to(std::uint64_t row) { row_ = row; }

  std::int64_t integer(std::size_t column) const override {
    const void* data = column_data(column);
    return duckdb_column_type(&result_, column) == kDuckdbBigint
               ? static_cast<const std::int64_t*>(data)[row_]
               : std::int64_t{static_cast<const std::int32_t*>(data)[row_]};
  }
  std::string_view text(std::size_t column) const override {
    return static_cast<const DuckdbString*>(column_data(column))[row_].text();
  }

 private:
  const void* column_data(std::size_t column) const {
    return duckdb_vector_get_data(duckdb_data_chunk_get_vector(chunk_, column));
  }

  duckdb_result& result_;
  duckdb_data_chunk chunk_;
  std::uint64_t row_ = 0;
};

class DuckdbTatpStatement : public SqlStatement {
 public:
  Status prepare(const DuckdbConnection& connection, const char* sql) {
    return statement_.prepare(connection, sql);
  }

  Result<std::uint64_t> run(std::span<const SqlValue> parameters, const Take& take) override {
    std::uint64_t index = 0;
    for (const SqlValue& value : parameters) bind(++index, value);
    DuckdbResult result;
    const Status status = statement_.execute(result);
    if (!status.ok()) return status_of(status);
    if (duckdb_result_return_type(*result.get()) == kDuckdbChangedRows)
      return duckdb_rows_changed(result.get());
    std::uint64_t rows = 0;
    for (;;) {
      duckdb_data_chunk chunk = duckdb_fetch_chunk(*result.get());
      if (chunk == nullptr) return rows;
      ChunkRow row(*result.get(), chunk);
      const std::uint64_t end = duckdb_data_chunk_get_size(chunk);
      for (std::uint64_t i = 0; i < end; ++i) {
        row.go_to(i);
        take(row);
      }
      rows += end;
      duckdb_destroy_data_chunk(&chunk);
    }
  }

 private:
  /// With the type of the parameter: with another one the statement would be planned again.
  void bind(std::uint64_t index, const SqlValue& value) {
    if (const auto* text = std::get_if<std::string_view>(&value)) {
      statement_.bind(index, *text);
      return;
    }
    const std::int64_t number = std::get<std::int64_t>(value);
    if (statement_.parameter_type(index) == kDuckdbInteger) {
      statement_.bind(index, static_cast<std::int32_t>(number));
    } else {
      statement_.bind(index, number);
    }
  }

  DuckdbStatement statement_;
};

class DuckdbTatpSession : public SqlSession {
 public:
  explicit DuckdbTatpSession(DuckdbConnection connection) : connection_(std::move(connection)) {}

  Status execute(const char* sql) override { return status_of(connection_.execute(sql)); }

  Result<std::unique_ptr<SqlStatement>> prepare(const char* sql) override {
    auto statement = std::make_unique<DuckdbTatpStatement>();
    Status status = statement->prepare(connection_, sql);
    if (!status.ok()) return status;
    return std::unique_ptr<SqlStatement>(std::move(statement));
  }

 private:
  DuckdbConnection connection_;
};

class DuckdbTatpAppender : public SqlAppender {
 public:
  explicit DuckdbTatpAppender(DuckdbConnection connection) : connection_(std::move(connection)) {}
  DuckdbTatpAppender(const DuckdbTatpAppender&) = delete;
  DuckdbTatpAppender& operator=(const DuckdbTatpAppender&) = delete;
  ~DuckdbTatpAppender() override {
    if (appender_ != nullptr) duckdb_appender_destroy(&appender_);
  }

  Status begin(const std::string& table) {
    return duckdb_appender_create(connection_.get(), nullptr, table.c_str(), &appender_) == 0
               ? Status()
               : duckdb_failure("cannot append to " + table);
  }
  Status append(std::span<const SqlValue> row) override {
    duckdb_state failed = 0;
    for (const SqlValue& value : row) {
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        failed |= duckdb_append_int64(appender_, *number);
      } else {
        const auto text = std::get<std::string_view>(value);
        failed |= duckdb_append_varchar_length(appender_, text.data(), text.size());
      }
    }
    failed |= duckdb_appender_end_row(appender_);
    return failed == 0 ? Status() : duckdb_failure("a row was not appended");
  }
  Status finish() override {
    return duckdb_appender_destroy(&appender_) == 0 ? Status()
                                                    : duckdb_failure("rows were not appended");
  }

 private:
  DuckdbConnection connection_;
  duckdb_appender appender_ = nullptr;
};

class DuckdbStore : public SqlStore {
 public:
  ~DuckdbStore() override {
    if (database_ != nullptr) duckdb_close(&database_);
  }

  std::string setup() const override {
    return "settings as they come, but for threads = 1: each user executes its own; the keys "
           "declared; bulk load by an appender in the order of the keys, then CHECKPOINT; a "
           "connection for each user, prepared statements; as many "
           "writers as users, a conflict is tried again";
  }
  std::string guarantee() const override { return "commit: changes in the log, which is synced"; }

  Status open(const std::string& directory) override {
    char* error = nullptr;
    if (duckdb_open_ext((directory + "/tatp.duckdb").c_str(), &database_, nullptr, &error) != 0) {
      Status status = duckdb_failure(error == nullptr ? "cannot open" : error);
      duckdb_free(error);
      return status;
    }
    // A connection of its own: each user's thread executes its own queries, and handing a query of
    // one row to other threads doubles its time.
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    return status.ok() ? connection.execute("SET threads = 1") : status;
  }

  Result<std::unique_ptr<SqlSession>> connect() override {
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    if (!status.ok()) return status;
    return std::unique_ptr<SqlSession>(new DuckdbTatpSession(std::move(connection)));
  }

  Result<std::unique_ptr<SqlAppender>> append_to(const std::string& table, std::size_t) override {
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    if (!status.ok()) return status;
    auto appender = std::make_unique<DuckdbTatpAppender>(std::move(connection));
    status = appender->begin(table);
    if (!status.ok()) return status;
    return std::unique_ptr<SqlAppender>(std::move(appender));
  }

  Status finish_load() override {
    DuckdbConnection connection;
    Status status = connection.connect(database_);
    return status.ok() ? connection.execute("CHECKPOINT") : status;
  }

  const char* after_table() const override { return ""; }
  const char* begin_writing() const override { return "BEGIN TRANSACTION"; }
  std::mutex* one_writer() override { return nullptr; }

 private:
  duckdb_database database_ = nullptr;
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_sql_tatp(std::make_unique<DuckdbStore>());
}

}  // namespace flugs::tools
