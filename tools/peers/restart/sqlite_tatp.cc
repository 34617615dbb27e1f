#include <mutex>
#include <utility>

#include "tools/peers/engines/sqlite_connection.h"
#include "tools/peers/restart/sql_store.h"

namespace flugs::tools {

namespace {

Status status_of(sqlite3* connection, int error) {
  if ((error & 0xff) == SQLITE_CONSTRAINT) return Status(StatusCode::kAlreadyExists);
  if ((error & 0xff) == SQLITE_BUSY) return Status(StatusCode::kConflict);
  return sqlite_failure(connection);
}

class CurrentRow : public SqlRow {
 public:
  explicit CurrentRow(sqlite3_stmt* statement) : statement_(statement) {}

  std::int64_t integer(std::size_t column) const override {
    return sqlite3_column_int64(statement_, static_cast<int>(column));
  }
  std::string_view text(std::size_t column) const override {
    const auto* text = sqlite3_column_text(statement_, static_cast<int>(column));
    const int bytes = sqlite3_column_bytes(statement_, static_cast<int>(column));
    return {reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes)};
  }

 private:
  sqlite3_stmt* statement_;
};

class SqliteTatpStatement : public SqlStatement {
 public:
  SqliteTatpStatement(sqlite3* connection, SqliteStatement statement)
      : connection_(connection), statement_(std::move(statement)) {}

  Result<std::uint64_t> run(std::span<const SqlValue> parameters, const Take& take) override {
    sqlite3_stmt* const statement = statement_.get();
    int index = 0;
    for (const SqlValue& value : parameters) bind(++index, value);
    std::uint64_t rows = 0;
    int result = sqlite3_step(statement);
    for (; result == SQLITE_ROW; result = sqlite3_step(statement), ++rows)
      take(CurrentRow(statement));
    Status status;
    if (result != SQLITE_DONE) status = status_of(connection_, result);
    sqlite3_reset(statement);
    if (!status.ok()) return status;
    if (sqlite3_stmt_readonly(statement) != 0) return rows;
    return static_cast<std::uint64_t>(sqlite3_changes(connection_));
  }

 private:
  /// The bound value must stay until the statement has been run.
  void bind(int index, const SqlValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      sqlite3_bind_int64(statement_.get(), index, *number);
    } else {
      const auto text = std::get<std::string_view>(value);
      sqlite3_bind_text(statement_.get(), index, text.data(), static_cast<int>(text.size()),
                        SQLITE_STATIC);
    }
  }

  sqlite3* connection_;
  SqliteStatement statement_;
};

class SqliteTatpSession : public SqlSession {
 public:
  explicit SqliteTatpSession(SqliteConnection connection) : connection_(std::move(connection)) {}

  Status execute(const char* sql) override {
    const int error = sqlite3_exec(connection_.get(), sql, nullptr, nullptr, nullptr);
    return error == SQLITE_OK ? Status() : status_of(connection_.get(), error);
  }

  Result<std::unique_ptr<SqlStatement>> prepare(const char* sql) override {
    sqlite3_stmt* made = nullptr;
    const int error =
        sqlite3_prepare_v3(connection_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    SqliteStatement statement(made);
    if (error != SQLITE_OK) return sqlite_failure(connection_.get());
    return std::unique_ptr<SqlStatement>(
        new SqliteTatpStatement(connection_.get(), std::move(statement)));
  }

 private:
  SqliteConnection connection_;
};

/// A transaction for the whole table.
class SqliteAppender : public SqlAppender {
 public:
  explicit SqliteAppender(SqliteConnection connection) : session_(std::move(connection)) {}

  Status begin(const std::string& table, std::size_t columns) {
    std::string sql = "INSERT INTO " + table + " VALUES (?";
    for (std::size_t i = 1; i < columns; ++i) sql += ", ?";
    Status status = session_.execute("BEGIN IMMEDIATE");
    if (!status.ok()) return status;
    Result<std::unique_ptr<SqlStatement>> statement = session_.prepare((sql + ")").c_str());
    if (!statement.ok()) return std::move(statement).status();
    insert_ = *std::move(statement);
    return {};
  }
  Status append(std::span<const SqlValue> row) override {
    return insert_->run(row, [](const SqlRow&) {}).status();
  }
  Status finish() override { return session_.execute("COMMIT"); }

 private:
  SqliteTatpSession session_;  // outlives the statement
  std::unique_ptr<SqlStatement> insert_;
};

class SqliteStore : public SqlStore {
 public:
  std::string setup() const override {
    return "WITHOUT ROWID where a key has several columns, journal_mode WAL, synchronous FULL, "
           "mmap_size 256 GB, a connection for each user, prepared statements, checkpoints as they "
           "come (1000 pages); log emptied after the bulk load; readers beside one writer: writers "
           "take turns";
  }
  std::string guarantee() const override { return "commit: pages in the log, which is synced"; }

  Status open(const std::string& directory) override {
    path_ = directory + "/tatp.sqlite";
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    first_ = *std::move(connection);
    return {};
  }

  // The first caller gets the connection with which the database was opened.
  Result<std::unique_ptr<SqlSession>> connect() override {
    {
      const std::lock_guard lock(first_mutex_);
      if (first_ != nullptr)
        return std::unique_ptr<SqlSession>(new SqliteTatpSession(std::move(first_)));
    }
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    return std::unique_ptr<SqlSession>(new SqliteTatpSession(*std::move(connection)));
  }

  Result<std::unique_ptr<SqlAppender>> append_to(const std::string& table,
                                                 std::size_t columns) override {
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    auto appender = std::make_unique<SqliteAppender>(*std::move(connection));
    Status status = appender->begin(table, columns);
    if (!status.ok()) return status;
    return std::unique_ptr<SqlAppender>(std::move(appender));
  }

  Status finish_load() override {
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    return sqlite_execute(connection->get(), "PRAGMA wal_checkpoint(TRUNCATE)");
  }

  const char* after_table() const override { return " WITHOUT ROWID"; }
  const char* begin_writing() const override { return "BEGIN IMMEDIATE"; }
  std::mutex* one_writer() override { return &writer_; }

 private:
  std::string path_;
  std::mutex first_mutex_;  // protects first_
  SqliteConnection first_;
  std::mutex writer_;  // held from begin to commit: SQLite's own waiting would sleep for too long
};

}  // namespace

std::unique_ptr<TatpEngine> make_tatp_engine() {
  return make_sql_tatp(std::make_unique<SqliteStore>());
}

}  // namespace flugs::tools
