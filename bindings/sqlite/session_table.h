#pragma once

#include "bindings/sqlite/session.h"
#include "bindings/sqlite/sqlite_api.h"

namespace flugs::sqlite {

/// A virtual table that takes part in the transactions of a session.
struct SessionTable : public sqlite3_vtab {
  explicit SessionTable(Session& of) noexcept : sqlite3_vtab(), session(of) {}
  SessionTable(const SessionTable&) = delete;
  SessionTable& operator=(const SessionTable&) = delete;
  ~SessionTable() { sqlite3_free(zErrMsg); }

  Session& session;
};

/// Sets the functions of a module of SessionTables that are about transactions.
void set_transaction_calls(sqlite3_module& module) noexcept;

}  // namespace flugs::sqlite
