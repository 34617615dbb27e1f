#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>

#include "flugs/status.h"

namespace flugs::tools {

/// On every connection. Commits are durable with FULL in this journal mode; NORMAL would sync the
/// log at checkpoints only.
inline constexpr const char* kSqliteSettings =
    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA mmap_size = 274877906944;"
    "PRAGMA temp_store = MEMORY;";

struct CloseSqlite {
  void operator()(sqlite3* connection) const { sqlite3_close(connection); }
};
using SqliteConnection = std::unique_ptr<sqlite3, CloseSqlite>;

struct FinishSqliteStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using SqliteStatement = std::unique_ptr<sqlite3_stmt, FinishSqliteStatement>;

inline Status sqlite_failure(sqlite3* connection) {
  return Status(StatusCode::kIoError, std::string("SQLite: ") + sqlite3_errmsg(connection));
}

inline Status sqlite_execute(sqlite3* connection, const char* sql) {
  return sqlite3_exec(connection, sql, nullptr, nullptr, nullptr) == SQLITE_OK
             ? Status()
             : sqlite_failure(connection);
}

inline Result<SqliteConnection> sqlite_connect(const std::string& path) {
  constexpr int kFlags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  sqlite3* opened = nullptr;
  const int error = sqlite3_open_v2(path.c_str(), &opened, kFlags, nullptr);
  SqliteConnection connection(opened);
  if (error != SQLITE_OK) return sqlite_failure(opened);
  sqlite3_busy_timeout(opened, 10'000);
  Status status = sqlite_execute(opened, kSqliteSettings);
  if (!status.ok()) return status;
  return connection;
}

}  // namespace flugs::tools
