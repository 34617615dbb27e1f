#pragma once

#include <string>

#include "bindings/sqlite/session.h"
#include "flugs/status.h"

// The tables of a pool as temporary virtual tables of a connection.

namespace flugs::sqlite {

/// Shows all tables of the session's pool, and `flugs_statistics`; those shown before are shown
/// anew. Those that SQLite cannot show go to `not_shown`. Fails with: kBusy (a statement reads one
/// of them), kAlreadyExists.
Status attach_all(Session& session);
/// Shows them no more; the pool's tables stay. Fails with: kBusy.
Status detach_all(Session& session);
/// Shows a table anew whose columns or keys have changed.
Status attach_again(Session& session, const std::string& table);

}  // namespace flugs::sqlite
