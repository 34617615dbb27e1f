#pragma once

#include <string>

#include "flugs/database.h"

namespace flugs::test {

/// Makes the pool of which test/format/pools has one for each format version: some of all that a
/// pool can hold, in 8 MB. Fails as the calls of Database and Transaction. A program may be built
/// of this and an earlier flugs, so it is kept to what that had.
Status make_golden_pool(const std::string& path);

/// Says what of the rows in such a pool is not as it was made; empty: nothing.
std::string compare_golden_pool(Database& database);

}  // namespace flugs::test
