// The program of another engine in `flugs bench tpcc --peers`.
#include <cstdio>
#include <string>
#include <utility>

#include "bench/support/clock.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_exchange.h"
#include "tools/peers/engines/exchange_program.h"
#include "tools/peers/tpcc/tpcc_engine.h"

namespace flugs::tools {

namespace {

Status execute(TpccEngine& engine, bench::TpccExchange& exchange) {
  bench::TpccRunOptions options;
  options.population = exchange.population;
  options.users = exchange.users;
  options.loop.seconds = exchange.seconds;
  options.loop.ramp_up_seconds = exchange.ramp_up_seconds;
  options.mix = exchange.mix;
  options.seed = exchange.population.seed;
  const Result<bench::TpccRunResult> run =
      bench::run_tpcc([&engine](std::uint32_t) { return engine.session(); }, options);
  if (run.ok()) exchange.set_result(*run);
  return run.status();
}

/// Whether all conditions hold.
Result<bool> check(TpccEngine& engine, bench::TpccExchange& exchange) {
  bench::TpccFindings findings(exchange.population);
  const Result<bool> indexes = engine.read_all(findings);
  if (!indexes.ok()) return indexes.status();
  bench::TpccReport report = findings.check();
  report.check(bench::TpccCondition::kE10);
  if (!*indexes)
    report.broken(bench::TpccCondition::kE10, "an index has not as many entries as its table");
  for (std::size_t i = 0; i < exchange.conditions.size(); ++i)
    exchange.conditions[i] = report.state(static_cast<bench::TpccCondition>(i));
  for (const std::string& problem : report.problems())
    std::fprintf(stderr, "flugs: %s: %s\n", exchange.engine, problem.c_str());
  return report.all_held();
}

Result<bool> run_tpcc_engine(TpccEngine& engine, bench::TpccExchange& exchange) {
  if (Status s = open_engine(engine, exchange); !s.ok()) return s;
  const std::uint64_t begin = bench::monotonic_ns();
  bench::TpccLoad load;
  if (Status s = engine.load(exchange.population, load); !s.ok()) return s;
  exchange.load_seconds = bench::seconds_since(begin);
  exchange.rows_loaded = load.rows;
  if (Status s = execute(engine, exchange); !s.ok()) return s;
  exchange.file_bytes = bytes_taken(exchange.directory);
  return check(engine, exchange);
}

}  // namespace

}  // namespace flugs::tools

int main(int argc, char** argv) {
  using flugs::bench::TpccExchange;
  return flugs::tools::run_exchange_program<TpccExchange>(
      {argv, static_cast<std::size_t>(argc)}, [](TpccExchange& exchange) {
        return flugs::tools::run_tpcc_engine(*flugs::tools::make_tpcc_engine(), exchange);
      });
}
