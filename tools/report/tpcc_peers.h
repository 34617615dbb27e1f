#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/support/json.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_exchange.h"
#include "flugs/status.h"

namespace flugs::tools {

/// A run of the same workload by another engine, in a process of its own.
struct TpccPeerRun {
  std::string key;  ///< "lmdb", "lmdb-nosync"
  bench::TpccExchange exchange;
  bench::TpccRunResult run;
  bool all_held = false;
};

/// Runs LMDB in new directories beside the pool `pool_path`, so on the same medium: with every
/// commit synced, and on a medium that survives the death of the process only (`medium` is
/// "emulated") also without syncs, which guarantees as much there.
/// Fails with kNotFound (its program was not built), kIoError, kCorrupt (it crashed).
Status run_tpcc_peers(const bench::TpccRunOptions& options, const std::string& pool_path,
                      const std::string& medium, std::vector<std::unique_ptr<TpccPeerRun>>& runs);

/// `flugs`: its own run, for the ratios.
bench::Json tpcc_peers_json(const bench::TpccRunResult& flugs,
                            const std::vector<std::unique_ptr<TpccPeerRun>>& runs);
void print_tpcc_peers(const bench::TpccRunResult& flugs, const std::string& flugs_guarantee,
                      const std::vector<std::unique_ptr<TpccPeerRun>>& runs);

}  // namespace flugs::tools
