#include "tools/report/ycsb_peers.h"

#include <fmt/format.h>

#include <utility>

#include "tools/report/ycsb_report.h"
#include "tools/support/latency_text.h"
#include "tools/support/peer_process.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

void set_ycsb_task(const bench::YcsbRunOptions& options, bool survives_kill_only,
                   bench::YcsbExchange& exchange) {
  exchange.rows = options.rows;
  exchange.mix = options.mix;
  exchange.users = options.users;
  exchange.seed = options.seed;
  exchange.seconds = options.loop.seconds;
  exchange.ramp_up_seconds = options.loop.ramp_up_seconds;
  exchange.survives_kill_only = survives_kill_only;
}

double ycsb_rate(const bench::YcsbRunResult& run) { return run.per_second(run.executed()); }

double ycsb_ratio(double ours, double theirs) { return theirs > 0 ? ours / theirs : 0; }

}  // namespace

Status run_ycsb_peers(const bench::YcsbRunOptions& options, const std::string& pool_path,
                      const std::string& medium, std::vector<std::unique_ptr<YcsbPeerRun>>& runs) {
  const Result<std::string> program = peer_program("ycsb-lmdb");
  if (!program.ok()) return program.status();
  for (const bool survives_kill_only : {false, true}) {
    if (survives_kill_only && medium != "emulated") continue;
    auto run = std::make_unique<YcsbPeerRun>();
    run->key = survives_kill_only ? "lmdb-nosync" : "lmdb";
    set_ycsb_task(options, survives_kill_only, run->exchange);
    const Result<bool> all_held = run_peer(*program, pool_path + "." + run->key, run->exchange);
    if (!all_held.ok()) return all_held.status();
    run->all_held = *all_held;
    run->run = run->exchange.result();
    runs.push_back(std::move(run));
  }
  return {};
}

bench::Json ycsb_peers_json(const bench::YcsbRunResult& flugs,
                            const std::vector<std::unique_ptr<YcsbPeerRun>>& runs) {
  bench::Json json = bench::Json::array();
  for (const auto& peer : runs) {
    bench::Json entry = {{"key", peer->key},
                         {"engine", peer->exchange.engine},
                         {"setup", peer->exchange.setup},
                         {"guarantee", peer->exchange.guarantee},
                         {"flugs_tps_ratio", ycsb_ratio(ycsb_rate(flugs), ycsb_rate(peer->run))},
                         {"flugs_processor_ratio",
                          ycsb_ratio(ycsb_processor_ns(flugs), ycsb_processor_ns(peer->run))}};
    entry.update(ycsb_run_json(peer->run));
    entry["invariants_held"] = peer->all_held;
    entry["file_bytes"] = peer->exchange.file_bytes;
    entry["load"] = {{"rows", peer->exchange.rows.records},
                     {"seconds", peer->exchange.load_seconds}};
    json.push_back(std::move(entry));
  }
  return json;
}

void print_ycsb_peers(const bench::YcsbRunResult& flugs, const std::string& flugs_guarantee,
                      const std::vector<std::unique_ptr<YcsbPeerRun>>& runs) {
  TextTable table({"engine", "per second", "flugs / it", "processor", "p50", "p99", "p99.9"});
  const auto add = [&](std::string name, const bench::YcsbRunResult& run) {
    std::vector<std::string> cells = {
        std::move(name), format_count(ycsb_rate(run)),
        fmt::format("{:.2f}", ycsb_ratio(ycsb_rate(flugs), ycsb_rate(run))),
        format_ns(static_cast<std::uint64_t>(ycsb_processor_ns(run)))};
    for (const double fraction : {0.5, 0.99, 0.999})
      cells.push_back(format_percentile(run.latency, fraction));
    table.add(std::move(cells));
  };
  add("flugs", flugs);
  for (const auto& peer : runs) add(peer->key, peer->run);
  fmt::print(
      "\nThe same rows and operations, one after the other on the same medium; processor: of an "
      "operation\n{}flugs: {}\n",
      table.to_string(), flugs_guarantee);
  for (const auto& peer : runs)
    fmt::print("{}: {}; {}; invariants {}; {} on the medium\n  {}\n", peer->key,
               peer->exchange.engine, peer->exchange.guarantee, peer->all_held ? "held" : "BROKEN",
               format_bytes(peer->exchange.file_bytes), peer->exchange.setup);
}

}  // namespace flugs::tools
