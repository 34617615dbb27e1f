// The program of another engine in `flugs bench tpcc --peers`.
//
//   flugs-peer-tpcc-ENGINE EXCHANGE --spawned-at NS

#include <sys/prctl.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "bench/support/clock.h"
#include "bench/support/shared_file.h"
#include "bench/tpcc/tpcc_driver.h"
#include "bench/tpcc/tpcc_exchange.h"
#include "tools/peers/tpcc_engine.h"
#include "tools/support/exit_status.h"

namespace flugs::tools {

namespace {

template <std::size_t size>
void fill_text(const std::string& text, char (&out)[size]) {
  out[text.copy(out, size - 1)] = '\0';
}

std::uint64_t bytes_taken(const std::string& directory) {
  constexpr std::uint64_t kBlockBytes = 512;
  std::uint64_t bytes = 0;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none)) {
    struct stat info{};
    if (stat(entry.path().c_str(), &info) == 0)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
  }
  return bytes;
}

Status execute(TpccEngine& engine, bench::TpccExchange& exchange) {
  bench::TpccRunOptions options;
  options.population = exchange.population;
  options.users = exchange.users;
  options.seconds = exchange.seconds;
  options.ramp_up_seconds = exchange.ramp_up_seconds;
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

Result<bool> run(TpccEngine& engine, bench::TpccExchange& exchange) {
  fill_text(engine.name(), exchange.engine);
  if (Status s = engine.open(exchange.directory, exchange.survives_kill_only); !s.ok()) return s;
  fill_text(engine.setup(), exchange.setup);
  fill_text(engine.guarantee(), exchange.guarantee);
  const std::uint64_t begin = bench::monotonic_ns();
  bench::TpccLoad load;
  if (Status s = engine.load(exchange.population, load); !s.ok()) return s;
  exchange.load_seconds = bench::seconds_since(begin);
  exchange.rows_loaded = load.rows;
  if (Status s = execute(engine, exchange); !s.ok()) return s;
  exchange.file_bytes = bytes_taken(exchange.directory);
  return check(engine, exchange);
}

int run_program(std::span<char*> arguments) {
  if (arguments.size() < 2) {
    std::fprintf(stderr, "usage: see tools/peers/tpcc_peer.cc\n");
    return kExitCouldNotRun;
  }
  Result<bench::SharedFile> file =
      bench::SharedFile::open(arguments[1], sizeof(bench::TpccExchange));
  Status status = file.status();
  if (file.ok()) {
    auto& exchange = *reinterpret_cast<bench::TpccExchange*>(file->data());
    const std::unique_ptr<TpccEngine> engine = make_tpcc_engine();
    const Result<bool> good = run(*engine, exchange);
    if (good.ok()) return *good ? kExitOk : kExitCheckFailed;
    status = good.status();
  }
  std::fprintf(stderr, "flugs: %s\n", status.to_string().c_str());
  return kExitCouldNotRun;
}

}  // namespace

}  // namespace flugs::tools

int main(int argc, char** argv) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return flugs::tools::run_program({argv, static_cast<std::size_t>(argc)});
}
