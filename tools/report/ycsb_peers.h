#pragma once

#include <string>

#include "bench/support/json.h"
#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_exchange.h"
#include "flugs/status.h"
#include "tools/report/peer_runs.h"

namespace flugs::tools {

using YcsbPeerRuns = PeerRuns<bench::YcsbExchange>;

/// Runs the same workload in another engine, "lmdb" or "rocksdb". `pool_path`, `medium` and
/// failures as of run_engine.
Status run_ycsb_peers(const std::string& engine, const bench::YcsbRunOptions& options,
                      const std::string& pool_path, const std::string& medium, YcsbPeerRuns& runs);

/// `flugs`: its own run, for the ratios.
bench::Json ycsb_peers_json(const bench::YcsbRunResult& flugs, const YcsbPeerRuns& runs);
void print_ycsb_peers(const bench::YcsbRunResult& flugs, const std::string& flugs_guarantee,
                      const YcsbPeerRuns& runs);

}  // namespace flugs::tools
