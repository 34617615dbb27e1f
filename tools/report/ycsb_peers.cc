#include "tools/report/ycsb_peers.h"

#include <fmt/format.h>

#include <utility>

#include "tools/report/ycsb_report.h"
#include "tools/support/latency_text.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

bench::YcsbExchange ycsb_task(const bench::YcsbRunOptions& options) {
  bench::YcsbExchange exchange;
  exchange.rows = options.rows;
  exchange.mix = options.mix;
  exchange.users = options.users;
  exchange.seed = options.seed;
  exchange.seconds = options.loop.seconds;
  exchange.ramp_up_seconds = options.loop.ramp_up_seconds;
  return exchange;
}

}  // namespace

Status run_ycsb_peers(const std::string& engine, const bench::YcsbRunOptions& options,
                      const std::string& pool_path, const std::string& medium, YcsbPeerRuns& runs) {
  return run_engine("ycsb", engine, ycsb_task(options), pool_path, medium, runs);
}

bench::Json ycsb_peers_json(const bench::YcsbRunResult& flugs, const YcsbPeerRuns& runs) {
  bench::Json json = bench::Json::array();
  for (const auto& peer : runs) {
    bench::Json entry = peer_json(flugs, *peer);
    entry.update(ycsb_run_json(peer->run));
    entry["invariants_held"] = peer->all_held;
    entry["load"] = {{"rows", peer->exchange.rows.records},
                     {"seconds", peer->exchange.load_seconds}};
    json.push_back(std::move(entry));
  }
  return json;
}

void print_ycsb_peers(const bench::YcsbRunResult& flugs, const std::string& flugs_guarantee,
                      const YcsbPeerRuns& runs) {
  TextTable table({"engine", "per second", "flugs / it", "processor", "p50", "p99", "p99.9"});
  const auto add = [&](std::string name, const bench::YcsbRunResult& run) {
    std::vector<std::string> cells = {std::move(name), format_count(rate_of(run)),
                                      fmt::format("{:.2f}", ratio_of(rate_of(flugs), rate_of(run))),
                                      format_ns(static_cast<std::uint64_t>(processor_ns_of(run)))};
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
