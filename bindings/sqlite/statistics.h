#pragma once

#include "bindings/sqlite/session.h"
#include "bindings/sqlite/sqlite_api.h"

namespace flugs::sqlite {

/// Makes the module of the table `flugs_statistics`, which has a row for each figure of the pool
/// and of its tables. It is read-only; but a write without rows makes SQLite tell the
/// session how the transaction ends.
int make_statistics_module(sqlite3* db, Session* session);

}  // namespace flugs::sqlite
