#pragma once

#include <cstdint>
#include <functional>

#include "bench/groups/group_data.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Creates g(k, t, v, few), all columns NOT NULL, no key, and loads all rows of the data, 10,000 in
/// a transaction. Fails as Database::create_table, Transaction::insert_rows and commit.
Result<TableId> load_groups(
    Database& database, const GroupData& data, std::uint32_t threads,
    const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace flugs::bench
