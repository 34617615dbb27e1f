#pragma once

#include <string>

#include "bench/support/json.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_exchange.h"
#include "flugs/status.h"
#include "tools/report/peer_runs.h"

namespace flugs::tools {

using TpccPeerRuns = PeerRuns<bench::TpccExchange>;

/// Runs the same workload in LMDB. `pool_path`, `medium` and failures as of run_engine.
Status run_tpcc_peers(const bench::TpccRunOptions& options, const std::string& pool_path,
                      const std::string& medium, TpccPeerRuns& runs);

/// `flugs`: its own run, for the ratios.
bench::Json tpcc_peers_json(const bench::TpccRunResult& flugs, const TpccPeerRuns& runs);
void print_tpcc_peers(const bench::TpccRunResult& flugs, const std::string& flugs_guarantee,
                      const TpccPeerRuns& runs);

}  // namespace flugs::tools
