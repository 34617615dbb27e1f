#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/json.h"
#include "flugs/status.h"
#include "tools/support/peer_process.h"

namespace flugs::tools {

/// A run of a workload by another engine, in a process of its own. `Exchange` says what that does,
/// and what came of it.
template <typename Exchange>
struct PeerRun {
  std::string key;  ///< of the engine: "lmdb", "lmdb-nosync"
  Exchange exchange;
  decltype(std::declval<const Exchange&>().result()) run;
  bool all_held = false;
};
template <typename Exchange>
using PeerRuns = std::vector<std::unique_ptr<PeerRun<Exchange>>>;

/// The engine's program, flugs-peer-WORKLOAD-ENGINE. Fails as peer_program.
inline Result<std::string> engine_program(const std::string& workload, const std::string& engine) {
  return peer_program(workload + "-" + engine);
}

/// Runs the engine's program in new directories beside the pool
/// `pool_path`, so on the same medium: with every commit synced, and on a medium that survives the
/// death of the process only (`medium` is "emulated") also without syncs, which guarantees as much
/// there. Fails as peer_program and run_peer.
template <typename Exchange>
Status run_engine(const std::string& workload, const std::string& engine, const Exchange& task,
                  const std::string& pool_path, const std::string& medium,
                  PeerRuns<Exchange>& runs) {
  const Result<std::string> program = engine_program(workload, engine);
  if (!program.ok()) return program.status();
  for (const bool survives_kill_only : {false, true}) {
    if (survives_kill_only && medium != "emulated") continue;
    auto run = std::make_unique<PeerRun<Exchange>>();
    run->key = engine + (survives_kill_only ? "-nosync" : "");
    run->exchange = task;
    run->exchange.survives_kill_only = survives_kill_only;
    const Result<bool> all_held = run_peer(*program, pool_path + "." + run->key, run->exchange);
    if (!all_held.ok()) return all_held.status();
    run->all_held = *all_held;
    run->run = run->exchange.result();
    runs.push_back(std::move(run));
  }
  return {};
}

inline double ratio_of(double ours, double theirs) { return theirs > 0 ? ours / theirs : 0; }

/// Transactions executed per second.
template <typename Run>
double rate_of(const Run& run) {
  return run.per_second(run.executed());
}
/// Nanoseconds of processor, user and system, for each executed transaction.
template <typename Run>
double processor_ns_of(const Run& run) {
  const double ns = static_cast<double>(run.loop.processor.user_ns + run.loop.processor.system_ns);
  return ns / static_cast<double>(std::max<std::uint64_t>(run.executed(), 1));
}

/// What the runs of all workloads have in common. `flugs`: its own run, for the ratios.
template <typename Run, typename Exchange>
bench::Json peer_json(const Run& flugs, const PeerRun<Exchange>& peer) {
  return {{"key", peer.key},
          {"engine", peer.exchange.engine},
          {"setup", peer.exchange.setup},
          {"guarantee", peer.exchange.guarantee},
          {"flugs_tps_ratio", ratio_of(rate_of(flugs), rate_of(peer.run))},
          {"flugs_processor_ratio", ratio_of(processor_ns_of(flugs), processor_ns_of(peer.run))},
          {"file_bytes", peer.exchange.file_bytes}};
}

}  // namespace flugs::tools
