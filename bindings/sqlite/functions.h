#pragma once

#include "bindings/sqlite/session.h"
#include "bindings/sqlite/sqlite_api.h"

namespace flugs::sqlite {

/// Makes the functions flugs_open, flugs_close, flugs_merge, and those that change tables.
int make_functions(sqlite3* db, Session* session);

}  // namespace flugs::sqlite
