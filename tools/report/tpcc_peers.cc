#include "tools/report/tpcc_peers.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "tools/report/tpcc_report.h"
#include "tools/support/latency_text.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

bench::TpccExchange tpcc_task(const bench::TpccRunOptions& options) {
  bench::TpccExchange exchange;
  exchange.population = options.population;
  exchange.users = options.users;
  exchange.seconds = options.loop.seconds;
  exchange.ramp_up_seconds = options.loop.ramp_up_seconds;
  exchange.mix = options.mix;
  return exchange;
}

bench::Json conditions_json(const PeerRun<bench::TpccExchange>& peer) {
  bench::Json json = bench::Json::object();
  for (std::size_t i = 0; i < peer.exchange.conditions.size(); ++i)
    if (peer.exchange.conditions[i] != bench::Check::kNotChecked)
      json[std::string(bench::kTpccConditionNames[i])] =
          peer.exchange.conditions[i] == bench::Check::kHeld;
  return json;
}

}  // namespace

Status run_tpcc_peers(const bench::TpccRunOptions& options, const std::string& pool_path,
                      const std::string& medium, TpccPeerRuns& runs) {
  return run_engine("tpcc", "lmdb", tpcc_task(options), pool_path, medium, runs);
}

bench::Json tpcc_peers_json(const bench::TpccRunResult& flugs, const TpccPeerRuns& runs) {
  bench::Json json = bench::Json::array();
  for (const auto& peer : runs) {
    bench::Json entry = peer_json(flugs, *peer);
    entry.update(tpcc_run_json(peer->run));
    entry["conditions"] = conditions_json(*peer);
    entry["conditions_held"] = peer->all_held;
    entry["load"] = {{"rows", peer->exchange.rows_loaded},
                     {"seconds", peer->exchange.load_seconds}};
    json.push_back(std::move(entry));
  }
  return json;
}

void print_tpcc_peers(const bench::TpccRunResult& flugs, const std::string& flugs_guarantee,
                      const TpccPeerRuns& runs) {
  std::vector<std::string> header = {"engine", "per second", "flugs / it", "processor"};
  for (const std::string_view name : bench::kTpccTypeNames)
    header.push_back("p50 " + std::string(name));
  TextTable table(std::move(header));
  const auto add = [&](std::string name, const bench::TpccRunResult& run) {
    std::vector<std::string> cells = {std::move(name), format_count(rate_of(run)),
                                      fmt::format("{:.2f}", ratio_of(rate_of(flugs), rate_of(run))),
                                      format_ns(static_cast<std::uint64_t>(processor_ns_of(run)))};
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
