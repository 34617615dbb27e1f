#pragma once

#include "flugs/database.h"

namespace flugs::bench {

/// Single operations on a table of ten columns whose unique key has three int32 columns: inserts,
/// look-ups by key, updates of one column, ten of them in a transaction.
/// Fails as the calls of Transaction do.
Status run_operations(Database& database);

}  // namespace flugs::bench
