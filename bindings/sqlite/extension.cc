#include <memory>
#include <mutex>
#include <set>

#include "bindings/sqlite/errors.h"
#include "bindings/sqlite/functions.h"
#include "bindings/sqlite/session.h"
#include "bindings/sqlite/statistics.h"
#include "bindings/sqlite/table.h"

#ifndef SQLITE_CORE
SQLITE_EXTENSION_INIT1
#endif

namespace flugs::sqlite {

namespace {

constexpr int kVersionMin = 3038000;  // sqlite3_vtab_in

/// The connections that have the extension: one that loads it again keeps its session.
struct Connections {
  std::mutex mutex;  // protects `known`
  std::set<sqlite3*> known;
};

/// Never destroyed: connections may be closed after the destructors of this library.
Connections& connections() {
  static Connections& instance = *new Connections;
  return instance;
}

/// False: the connection is known already.
bool add_connection(sqlite3* db) {
  Connections& all = connections();
  const std::lock_guard lock(all.mutex);
  return all.known.insert(db).second;
}

void forget_connection(sqlite3* db) noexcept {
  Connections& all = connections();
  const std::lock_guard lock(all.mutex);
  all.known.erase(db);
}

void end_session(void* context) {
  const std::unique_ptr<Session> session(static_cast<Session*>(context));
  forget_connection(session->db());
}

int start(sqlite3* db, char** error) {
  if (sqlite3_libversion_number() < kVersionMin) {
    *error =
        sqlite3_mprintf("flugs needs SQLite 3.38 or newer, and this is %s", sqlite3_libversion());
    return SQLITE_ERROR;
  }
  auto session = std::make_unique<Session>(db);
  if (!add_connection(db)) return SQLITE_OK;
  Session* const kept = session.get();
  int code = make_statistics_module(db, kept);
  if (code == SQLITE_OK) code = make_functions(db, kept);
  // The module owns the session from now on, also when it cannot be made.
  session.release();
  const int made = make_table_module(db, kept, end_session);
  if (code == SQLITE_OK) code = made;
  // Threads of pools, and other connections, may be in the library when this connection is closed.
#ifdef SQLITE_CORE
  return code;
#else
  return code == SQLITE_OK ? SQLITE_OK_LOAD_PERMANENTLY : code;
#endif
}

}  // namespace

}  // namespace flugs::sqlite

extern "C" __attribute__((visibility("default"))) int sqlite3_flugssqlite_init(
    sqlite3* db, char** error, [[maybe_unused]] const sqlite3_api_routines* api) {
#ifndef SQLITE_CORE
  SQLITE_EXTENSION_INIT2(api);
#endif
  return flugs::sqlite::guarded([&] { return flugs::sqlite::start(db, error); });
}
