#include "tools/report/tpcc_peers.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "tools/report/tpcc_report.h"
#include "tools/support/latency_text.h"
#include "tools/support/peer_process.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

void set_task(const bench::TpccRunOptions& options, bool survives_kill_only,
              bench::TpccExchange& exchange) {
  exchange.population = options.population;
  exchange.users = options.users;
  exchange.seconds = options.seconds;
  exchange.ramp_up_seconds = options.ramp_up_seconds;
  exchange.mix = options.mix;
  exchange.survives_kill_only = survives_kill_only;
}

double ratio(double ours, double theirs) { return theirs > 0 ? ours / theirs : 0; }

double tps_of(const bench::TpccRunResult& run) { return run.per_second(run.executed()); }

bench::Json conditions_json(const TpccPeerRun& peer) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < peer.exchange.conditions.size(); ++i)
    if (peer.exchange.conditions[i] != bench::Check::kNotChecked)
      json[std::string(bench::kTpccConditionNames[i])] =
          peer.exchange.conditions[i] == bench::Check::kHeld;
  return json;
}

}  // namespace

Status run_tpcc_peers(const bench::TpccRunOptions& options, const std::string& pool_path,
                      const std::string& medium, std::vector<std::unique_ptr<TpccPeerRun>>& runs) {
  const Result<std::string> program = peer_program("tpcc-lmdb");
  if (!program.ok()) return program.status();
  for (const bool survives_kill_only : {false, true}) {
    if (survives_kill_only && medium != "emulated") continue;
    auto run = std::make_unique<TpccPeerRun>();
    run->key = survives_kill_only ? "lmdb-nosync" : "lmdb";
    set_task(options, survives_kill_only, run->exchange);
    const Result<bool> all_held = run_peer(*program, pool_path + "." + run->key, run->exchange);
    if (!all_held.ok()) return all_held.status();
    run->all_held = *all_held;
    run->run = run->exchange.result();
    runs.push_back(std::move(run));
  }
  return {};
}

bench::Json tpcc_peers_json(const bench::TpccRunResult& flugs,
                            const std::vector<std::unique_ptr<TpccPeerRun>>& runs) {
  bench::Json json = bench::Json::array();
  for (const auto& peer : runs) {
    bench::Json entry = {
        {"key", peer->key},
        {"engine", peer->exchange.engine},
        {"setup", peer->exchange.setup},
        {"guarantee", peer->exchange.guarantee},
        {"flugs_tps_ratio", ratio(tps_of(flugs), tps_of(peer->run))},
        {"flugs_processor_ratio", ratio(tpcc_processor_ns(flugs), tpcc_processor_ns(peer->run))}};
    entry.update(tpcc_run_json(peer->run));
    entry["conditions"] = conditions_json(*peer);
    entry["conditions_held"] = peer->all_held;
    entry["file_bytes"] = peer->exchange.file_bytes;
    entry["load"] = {{"rows", peer->exchange.rows_loaded},
                     {"seconds", peer->exchange.load_seconds}};
    json.push_back(std::move(entry));
  }
  return json;
}

void print_tpcc_peers(const bench::TpccRunResult& flugs, const std::string& flugs_guarantee,
                      const std::vector<std::unique_ptr<TpccPeerRun>>& runs) {
  std::vector<std::string> header = {"engine", "per second", "flugs / it", "processor"};
  for (const std::string_view name : bench::kTpccTypeNames)
    header.push_back("p50 " + std::string(name));
  TextTable table(std::move(header));
  const auto add = [&](std::string name, const bench::TpccRunResult& run) {
    std::vector<std::string> cells = {
        std::move(name), format_count(tps_of(run)),
        fmt::format("{:.2f}", ratio(tps_of(flugs), tps_of(run))),
        format_ns(static_cast<std::uint64_t>(tpcc_processor_ns(run)))};
    for (const bench::TpccTypeResult& type : run.types)
      cells.push_back(format_percentile(type.latency, 0.5));
    table.add(std::move(cells));
  };
  add("flugs", flugs);
  for (const auto& peer : runs) add(peer->key, peer->run);
  fmt::print(
      "\nThe same rows, inputs and programs, one after the other on the same medium; "
      "processor: of a transaction\n{}flugs: {}\n",
      table.to_string(), flugs_guarantee);
  for (const auto& peer : runs)
    fmt::print("{}: {}; {}; conditions {}; {} on the medium\n  {}\n", peer->key,
               peer->exchange.engine, peer->exchange.guarantee, peer->all_held ? "held" : "BROKEN",
               format_bytes(peer->exchange.file_bytes), peer->exchange.setup);
}

}  // namespace flugs::tools
