#pragma once

#include <cstdint>

#include "flugs/database.h"

namespace flugs::bench {

inline constexpr std::uint32_t kChSuppliers = 10'000;

/// Makes CH-benCHmark's three static tables, which TPC-C has not, and fills them: REGION with 5
/// rows, NATION with 62, SUPPLIER with `kChSuppliers`. The same seed gives the same rows. A
/// nation's key is the code of a letter or digit, which is the first of its customers' states; the
/// supplier of a row of STOCK is s_w_id * s_i_id modulo `kChSuppliers`. Fails as
/// Database::create_table and Transaction::insert_rows.
Status make_ch_tables(Database& database, std::uint64_t seed);

}  // namespace flugs::bench
