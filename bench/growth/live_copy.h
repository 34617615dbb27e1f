#pragma once

#include "flugs/database.h"

namespace flugs::bench {

/// Makes the tables of `from` in `to`, and inserts the rows that live in them now. `to` has no
/// table yet. Fails with the status of the call that failed.
Status copy_live_rows(Database& from, Database& to);

}  // namespace flugs::bench
