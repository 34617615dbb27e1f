#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_exchange.h"
#include "flugs/status.h"

namespace flugs::tools {

/// A run of the same workload by another engine, in a process of its own.
struct YcsbPeerRun {
  std::string key;  ///< "lmdb", "lmdb-nosync"
  bench::YcsbExchange exchange;
  bench::YcsbRunResult run;
  bool all_held = false;
};

/// Runs LMDB in new directories beside the pool `pool_path`, so on the same medium: with every
/// commit synced, and on a medium that survives the death of the process only (`medium` is
/// "emulated") also without syncs, which guarantees as much there.
/// Fails as peer_program and run_peer.
Status run_ycsb_peers(const bench::YcsbRunOptions& options, const std::string& pool_path,
                      const std::string& medium, std::vector<std::unique_ptr<YcsbPeerRun>>& runs);

/// `flugs`: its own run, for the ratios.
bench::Json ycsb_peers_json(const bench::YcsbRunResult& flugs,
                            const std::vector<std::unique_ptr<YcsbPeerRun>>& runs);
void print_ycsb_peers(const bench::YcsbRunResult& flugs, const std::string& flugs_guarantee,
                      const std::vector<std::unique_ptr<YcsbPeerRun>>& runs);

}  // namespace flugs::tools
