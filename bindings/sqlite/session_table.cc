#include "bindings/sqlite/session_table.h"

#include "bindings/sqlite/errors.h"

namespace flugs::sqlite {

namespace {

// SQLite calls each table of a transaction; the session does it once.

Session& session_of(sqlite3_vtab* table) noexcept {
  return static_cast<SessionTable*>(table)->session;
}

int begin(sqlite3_vtab* table) {
  session_of(table).begin();
  return SQLITE_OK;
}

int sync(sqlite3_vtab* table) {
  return guarded([&] {
    const Status status = session_of(table).commit();
    if (status.ok()) return SQLITE_OK;
    const int code = fail(table, status);
    // After a plain SQLITE_BUSY, SQLite would let COMMIT be tried again.
    return code == SQLITE_BUSY ? SQLITE_BUSY_SNAPSHOT : code;
  });
}

int commit(sqlite3_vtab* table) {
  session_of(table).end();
  return SQLITE_OK;
}

int rollback(sqlite3_vtab* table) {
  session_of(table).rollback();
  return SQLITE_OK;
}

int savepoint(sqlite3_vtab* table, int number) {
  return guarded([&] {
    const Status status = session_of(table).savepoint(number);
    return status.ok() ? SQLITE_OK : fail(table, status);
  });
}

int release(sqlite3_vtab* table, int number) {
  return guarded([&] {
    const Status status = session_of(table).release(number);
    return status.ok() ? SQLITE_OK : fail(table, status);
  });
}

int rollback_to(sqlite3_vtab* table, int number) {
  return guarded([&] {
    const Status status = session_of(table).rollback_to(number);
    return status.ok() ? SQLITE_OK : fail(table, status);
  });
}

}  // namespace

void set_transaction_calls(sqlite3_module& module) noexcept {
  module.iVersion = 2;
  module.xBegin = begin;
  module.xSync = sync;
  module.xCommit = commit;
  module.xRollback = rollback;
  module.xSavepoint = savepoint;
  module.xRelease = release;
  module.xRollbackTo = rollback_to;
}

}  // namespace flugs::sqlite
