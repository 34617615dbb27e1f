#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "tools/peers/engines/sqlite_connection.h"
#include "tools/peers/restart/engine.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kRowsPerLoadTransaction = 1'000'000;

class SqliteSession : public PeerSession {
 public:
  explicit SqliteSession(SqliteConnection connection) : connection_(std::move(connection)) {}

  Status find(PeerRow& row) override {
    if (Status s = prepare(find_, "SELECT c1, c2, c3, c4 FROM r WHERE id = ?"); !s.ok()) return s;
    sqlite3_bind_int64(find_.get(), 1, row.id);
    const int result = sqlite3_step(find_.get());
    if (result == SQLITE_ROW)
      for (std::size_t i = 0; i < row.values.size(); ++i)
        row.values[i] = sqlite3_column_int(find_.get(), static_cast<int>(i));
    Status status;
    if (result == SQLITE_DONE) status = Status(StatusCode::kNotFound);
    if (result != SQLITE_DONE && result != SQLITE_ROW) status = sqlite_failure(connection_.get());
    sqlite3_reset(find_.get());
    return status;
  }

  Status write(std::span<const PeerRow> inserted, const PeerRow* changed) override {
    Status status = sqlite_execute(connection_.get(), "BEGIN IMMEDIATE");
    for (std::size_t i = 0; i < inserted.size() && status.ok(); ++i) status = insert(inserted[i]);
    if (status.ok() && changed != nullptr) status = change(*changed);
    if (status.ok()) status = sqlite_execute(connection_.get(), "COMMIT");
    return status;
  }

  Status insert(const PeerRow& row) {
    if (Status s = prepare(insert_, "INSERT INTO r VALUES (?, ?, ?, ?, ?)"); !s.ok()) return s;
    sqlite3_bind_int64(insert_.get(), 1, row.id);
    for (std::size_t i = 0; i < row.values.size(); ++i)
      sqlite3_bind_int(insert_.get(), static_cast<int>(i) + 2, row.values[i]);
    return finish(insert_.get());
  }

 private:
  Status change(const PeerRow& row) {
    if (Status s = prepare(change_, "UPDATE r SET c2 = ? WHERE id = ?"); !s.ok()) return s;
    sqlite3_bind_int(change_.get(), 1, row.values[1]);
    sqlite3_bind_int64(change_.get(), 2, row.id);
    return finish(change_.get());
  }

  Status prepare(SqliteStatement& statement, const char* sql) {
    if (statement != nullptr) return {};
    sqlite3_stmt* made = nullptr;
    const int error =
        sqlite3_prepare_v3(connection_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &made, nullptr);
    statement.reset(made);
    return error == SQLITE_OK ? Status() : sqlite_failure(connection_.get());
  }
  Status finish(sqlite3_stmt* statement) {
    const int result = sqlite3_step(statement);
    sqlite3_reset(statement);
    return result == SQLITE_DONE ? Status() : sqlite_failure(connection_.get());
  }

  SqliteConnection connection_;  // outlives the statements below
  SqliteStatement find_;
  SqliteStatement insert_;
  SqliteStatement change_;
};

class SqliteEngine : public PeerEngine {
 public:
  std::string setup() const override {
    return "id INTEGER PRIMARY KEY, journal_mode WAL, synchronous FULL, mmap_size 256 GB, "
           "prepared statements, checkpoints as they come (1000 pages); log emptied after the bulk "
           "load; writers take turns";
  }
  std::string guarantee() const override { return "commit: pages in the log, which is synced"; }

  Status open(const std::string& directory, bool create) override {
    path_ = directory + "/r.sqlite";
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    first_ = *std::move(connection);
    if (!create) return {};
    return sqlite_execute(
        first_.get(),
        "CREATE TABLE r (id INTEGER PRIMARY KEY, c1 INTEGER NOT NULL, c2 INTEGER NOT "
        "NULL, c3 INTEGER NOT NULL, c4 INTEGER NOT NULL)");
  }

  Status load(std::uint64_t rows, const NextRow& next) override {
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    sqlite3* const raw = connection->get();
    SqliteSession session(*std::move(connection));
    Status status;
    for (std::uint64_t begin = 0; begin < rows && status.ok(); begin += kRowsPerLoadTransaction) {
      const std::uint64_t end = std::min(rows, begin + kRowsPerLoadTransaction);
      status = sqlite_execute(raw, "BEGIN IMMEDIATE");
      for (std::uint64_t i = begin; i < end && status.ok(); ++i) status = session.insert(next());
      if (status.ok()) status = sqlite_execute(raw, "COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
    }
    return status;
  }

  Result<std::unique_ptr<PeerSession>> session() override {
    // The first caller gets the connection with which the database was opened.
    if (first_ != nullptr)
      return std::unique_ptr<PeerSession>(new SqliteSession(std::move(first_)));
    Result<SqliteConnection> connection = sqlite_connect(path_);
    if (!connection.ok()) return std::move(connection).status();
    return std::unique_ptr<PeerSession>(new SqliteSession(*std::move(connection)));
  }

 private:
  std::string path_;
  SqliteConnection first_;
};

}  // namespace

std::string peer_engine_name() { return std::string("SQLite ") + sqlite3_libversion(); }

std::unique_ptr<PeerEngine> make_peer_engine() { return std::make_unique<SqliteEngine>(); }

}  // namespace flugs::tools
