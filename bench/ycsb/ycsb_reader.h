#pragma once

#include <cstdint>

#include "bench/ycsb/ycsb_client.h"
#include "bench/ycsb/ycsb_findings.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Reads all rows on one snapshot. Fails as Transaction::scan.
Status read_ycsb(const Transaction& transaction, const YcsbTable& table, const YcsbRows& rows,
                 YcsbFindings& findings);

/// Checks all invariants on a database on which nothing else runs, Y7 by Database::check. `count`:
/// the rows that there must be.
/// Fails as Database::begin and Transaction::scan.
Result<YcsbReport> check_ycsb(Database& database, const YcsbTable& table, const YcsbRows& rows,
                              std::uint64_t count);

}  // namespace flugs::bench
