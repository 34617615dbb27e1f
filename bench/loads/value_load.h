#pragma once

#include <cstdint>

#include "flugs/database.h"

namespace flugs::bench {

/// Makes a table of four int32 columns with dictionaries and loads `rows` rows. Each row has a
/// value in each column that was not there before: the most that a load can ask of dictionaries'
/// indexes. 10,000 rows in a transaction. Returns its seconds. Fails as create_table,
/// Transaction::insert_rows and commit.
Result<double> load_new_values(Database& database, std::uint64_t rows, std::uint32_t threads);

}  // namespace flugs::bench
