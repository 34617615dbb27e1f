#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "bench/support/environment.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "verify/damage/pool_fuzzer.h"

namespace flugs::tools {

namespace {

struct FuzzPoolOptions {
  damage::PoolFuzzOptions fuzz;
  std::int64_t replay = -1;
  std::string json;
};

bench::Json figures_json(const FuzzPoolOptions& options, const damage::PoolFuzzFigures& figures) {
  const bench::Environment environment = bench::environment();
  bench::Json json;
  json["commit"] = environment.commit;
  json["seed"] = options.fuzz.seed;
  json["inputs"] = figures.inputs;
  json["refused"] = figures.refused;
  json["answered"] = figures.answered;
  json["crashed"] = figures.crashed;
  json["hung"] = figures.hung;
  json["vouched"] = figures.vouched;
  json["undetected_under_checksum"] = figures.undetected_under_checksum;
  json["in_files"] = figures.in_files;
  json["inputs_per_s"] = static_cast<double>(figures.inputs) / figures.seconds;
  json["failures"] = bench::Json::array();
  for (const damage::PoolFuzzFailure& failure : figures.failures)
    json["failures"].push_back({{"input", failure.input}, {"what", failure.what}});
  json["machine"] = bench::to_json(environment);
  return json;
}

int run_replay(const FuzzPoolOptions& options) {
  const Status status = damage::replay_pool_input(
      options.fuzz, static_cast<std::uint64_t>(options.replay), [](const std::string& words) {
        fmt::print("{}\n", words);
        std::fflush(stdout);  // what comes next may end the process
      });
  return status.ok() ? kExitOk : could_not_run(status);
}

int run_fuzz(FuzzPoolOptions options) {
  ProgressBar bar;
  options.fuzz.progress = [&bar](std::uint64_t done, std::uint64_t total) {
    bar.update("damaging", done, total, "pools");
  };
  const Result<damage::PoolFuzzFigures> figures = damage::fuzz_pools(options.fuzz);
  bar.clear();
  if (!figures.ok()) return could_not_run(figures.status());
  fmt::print(
      "{} damaged pools ({} in files), {:.0f} a second: {} refused, {} answered, {} crashed, {} "
      "hung\n{} of them damaged under a checksum only, {} of these undetected\n",
      figures->inputs, figures->in_files, static_cast<double>(figures->inputs) / figures->seconds,
      figures->refused, figures->answered, figures->crashed, figures->hung, figures->vouched,
      figures->undetected_under_checksum);
  for (const damage::PoolFuzzFailure& failure : figures->failures)
    fmt::print(
        "input {}: {}; repeat with: flugs prove fuzz-pool --seed {} --file-every {} --replay {}\n",
        failure.input, failure.what, options.fuzz.seed, options.fuzz.file_every, failure.input);
  const bool good =
      figures->crashed == 0 && figures->hung == 0 && figures->undetected_under_checksum == 0;
  return finish_with_json(options.json, figures_json(options, *figures),
                          good ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_fuzz_pool(CLI::App& app, Action& action) {
  auto options = std::make_shared<FuzzPoolOptions>();
  options->fuzz.file_every = 200;
  CLI::App* command = app.add_subcommand(
      "fuzz-pool", "Opens, checks, reads and writes damaged pools: none may crash");
  command->add_option("--inputs", options->fuzz.inputs, "Damaged pools to make")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--seed", options->fuzz.seed, "Seed of all random numbers")
      ->capture_default_str();
  command->add_option("--first", options->fuzz.first, "Number of the first input")
      ->capture_default_str();
  command
      ->add_option("--file-every", options->fuzz.file_every,
                   "Every Nth pool lies in a file instead of in memory; 0: none")
      ->capture_default_str();
  command
      ->add_option("--hang-seconds", options->fuzz.hang_seconds,
                   "Seconds after which an input counts as hung")
      ->check(CLI::Range(1u, 3600u))
      ->capture_default_str();
  command->add_option("--replay", options->replay, "Run this one input only, in this process")
      ->check(CLI::NonNegativeNumber);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options] {
    const std::uint64_t bytes_wanted = std::uint64_t{64} << 20;
    Result<PoolFile> file = PoolFile::choose("", false, bytes_wanted);
    if (!file.ok()) return could_not_run(file.status());
    options->fuzz.file = file->path();
    return options->replay >= 0 ? run_replay(*options) : run_fuzz(*options);
  });
}

}  // namespace flugs::tools
