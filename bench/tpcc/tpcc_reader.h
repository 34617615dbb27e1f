#pragma once

#include "bench/tpcc/tpcc_findings.h"
#include "bench/tpcc/tpcc_schema.h"
#include "flugs/database.h"

namespace flugs::bench {

/// Reads all rows on one snapshot. Fails as Transaction::scan.
Status read_tpcc(const Transaction& transaction, const TpccTables& tables, TpccFindings& findings);

/// Checks all conditions on a database on which nothing else runs, E10 by Database::check.
/// Fails as Database::begin and Transaction::scan.
Result<TpccReport> check_tpcc(Database& database, const TpccTables& tables,
                              const TpccOptions& population);

}  // namespace flugs::bench
