#pragma once

#include <string>

#include "flugs/database.h"

namespace flugs::test {

/// Makes the pool that test/format/pools keeps for each format version: a sample of all structures
/// that a pool can hold, in 8 MB. Fails as the calls of Database and Transaction. It uses only what
/// an earlier flugs had, so that a program can be built from both.
Status make_golden_pool(const std::string& path);

/// Describes differences of the pool's rows from the original; empty: none.
std::string compare_golden_pool(Database& database);

}  // namespace flugs::test
