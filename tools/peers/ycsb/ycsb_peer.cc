// The program of another engine in `flugs bench ycsb --peers`.
#include <cstdio>
#include <string>
#include <utility>

#include "bench/support/clock.h"
#include "bench/ycsb/ycsb_driver.h"
#include "bench/ycsb/ycsb_exchange.h"
#include "tools/peers/engines/exchange_program.h"
#include "tools/peers/ycsb/ycsb_engine.h"

namespace flugs::tools {

namespace {

Status execute(YcsbEngine& engine, bench::YcsbExchange& exchange) {
  bench::YcsbRunOptions options;
  options.rows = exchange.rows;
  options.mix = exchange.mix;
  options.users = exchange.users;
  options.seed = exchange.seed;
  options.loop.seconds = exchange.seconds;
  options.loop.ramp_up_seconds = exchange.ramp_up_seconds;
  const Result<bench::YcsbRunResult> run =
      bench::run_ycsb([&engine](std::uint32_t) { return engine.session(); }, options);
  if (run.ok()) exchange.set_result(*run);
  return run.status();
}

/// Whether all invariants hold.
Result<bool> check(YcsbEngine& engine, bench::YcsbExchange& exchange) {
  bench::YcsbFindings findings(exchange.rows, exchange.rows.records + exchange.inserted);
  if (Status s = engine.read_all(findings); !s.ok()) return s;
  const bench::YcsbReport report = findings.check();
  for (std::size_t i = 0; i < exchange.invariants.size(); ++i)
    exchange.invariants[i] = report.state(static_cast<bench::YcsbInvariant>(i));
  for (const std::string& problem : report.problems())
    std::fprintf(stderr, "flugs: %s: %s\n", exchange.engine, problem.c_str());
  return report.all_held();
}

Result<bool> run_ycsb_engine(YcsbEngine& engine, bench::YcsbExchange& exchange) {
  if (Status s = open_engine(engine, exchange); !s.ok()) return s;
  const std::uint64_t begin = bench::monotonic_ns();
  if (Status s = engine.load(exchange.rows); !s.ok()) return s;
  exchange.load_seconds = bench::seconds_since(begin);
  if (Status s = execute(engine, exchange); !s.ok()) return s;
  exchange.file_bytes = bytes_taken(exchange.directory);
  return check(engine, exchange);
}

}  // namespace

}  // namespace flugs::tools

int main(int argc, char** argv) {
  using flugs::bench::YcsbExchange;
  return flugs::tools::run_exchange_program<YcsbExchange>(
      {argv, static_cast<std::size_t>(argc)}, [](YcsbExchange& exchange) {
        return flugs::tools::run_ycsb_engine(*flugs::tools::make_ycsb_engine(), exchange);
      });
}
