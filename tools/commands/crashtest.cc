#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "base/processors.h"
#include "bench/support/environment.h"
#include "tools/report/explore_job.h"
#include "tools/support/command.h"
#include "tools/support/progress_bar.h"
#include "verify/crash/exploration/workload.h"

namespace flugs::tools {

namespace {

constexpr const char* kFactoryName = "flugs_crash_workload";

struct CrashtestOptions {
  std::string plugin;
  std::uint64_t states = 20'000;
  std::uint64_t seed = 1;
  std::uint32_t processes = processors();
  std::uint32_t pool_kilobytes = 512;
  std::uint32_t slots = 2;
  std::string replay;
  std::string json;
};

Result<crash::WorkloadFactory> load(const std::string& path) {
  // Without a slash the name would be looked for elsewhere.
  const std::string file = std::filesystem::absolute(path).string();
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status(StatusCode::kNotFound, ::dlerror());
  using Make = CrashWorkload* (*)(std::uint64_t);
  const auto make = reinterpret_cast<Make>(::dlsym(library, kFactoryName));
  if (make == nullptr)
    return Status(
        StatusCode::kNotFound,
        fmt::format("{}: function {} is missing, see flugs/crashtest.h", path, kFactoryName));
  return crash::WorkloadFactory(
      [make](std::uint64_t seed) { return std::unique_ptr<CrashWorkload>(make(seed)); });
}

class Crashtest {
 public:
  Crashtest(const CrashtestOptions& options, crash::WorkloadFactory make)
      : options_(options), make_(std::move(make)), pool_(options.processes) {}

  Status run() {
    while (states_ + begun_ < options_.states || !pool_.is_empty()) {
      if (states_ + begun_ >= options_.states || pool_.is_full()) {
        if (Status s = pool_.wait(); !s.ok()) return s;
        bar_.update("exploring", states_, options_.states, "states");
        continue;
      }
      if (Status s = start(); !s.ok()) return s;
    }
    bar_.clear();
    return {};
  }

  ExploreFigures explore_one(const crash::Exploration& job) const {
    const crash::WorkloadLimits limits{std::size_t{options_.pool_kilobytes} << 10, options_.slots};
    return figures_of(job, crash::explore_workload(job, make_, limits), command());
  }
  const ExploreFigures& figures() const { return figures_; }

 private:
  std::string command() const {
    return fmt::format("flugs prove crashtest {} --pool-kb {} --slots {}", options_.plugin,
                       options_.pool_kilobytes, options_.slots);
  }

  Status start() {
    crash::Exploration job;
    job.protocol = "workload";
    job.round = jobs_++;
    job.seed = options_.seed;
    job.slots = options_.slots;
    job.tears_words = job.round % 2 == 1;
    job.at_flushes = job.round % 4 >= 2;
    job.images_max = std::min({kStatesPerJobMax, std::max(options_.states / 8, std::uint64_t{1}),
                               options_.states - states_ - begun_});
    begun_ += job.images_max;
    return pool_.start([this, &job] { return to_json(explore_one(job)); },
                       [this, job](const bench::Json& answer, int signal) {
                         begun_ -= job.images_max;
                         add(job, answer, signal);
                       });
  }

  void add(const crash::Exploration& job, const bench::Json& answer, int signal) {
    const ExploreFigures figures =
        answer.is_null() ? figures_of_death(job, signal, command()) : figures_from(answer);
    states_ += std::max<std::uint64_t>(figures.states, 1);
    if (!figures.failure_words.empty()) bar_.clear();
    for (const std::string& words : figures.failure_words) fmt::print(stderr, "flugs: {}\n", words);
    figures_ += figures;
  }

  const CrashtestOptions& options_;
  crash::WorkloadFactory make_;
  JobPool pool_;
  ProgressBar bar_;
  ExploreFigures figures_;
  std::uint32_t jobs_ = 0;
  std::uint64_t states_ = 0;
  std::uint64_t begun_ = 0;
};

int run_command(const CrashtestOptions& options) {
  Result<crash::WorkloadFactory> make = load(options.plugin);
  if (!make.ok()) return could_not_run(make.status());
  Crashtest crashtest(options, std::move(*make));
  const auto start = std::chrono::steady_clock::now();
  ExploreFigures total;
  if (options.replay.empty()) {
    if (Status s = crashtest.run(); !s.ok()) return could_not_run(s);
    total = crashtest.figures();
  } else {
    const Result<crash::Exploration> exploration = crash::read_replay(options.replay);
    if (!exploration.ok()) return could_not_run(exploration.status());
    total = crashtest.explore_one(*exploration);
    for (const std::string& words : total.failure_words) fmt::print(stderr, "flugs: {}\n", words);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  fmt::print("{} crash points, {} states ({} crashes inside recovery) in {:.1f} s; {} failures\n",
             total.crash_points, total.states, total.nested, seconds, total.failures);
  bench::Json json;
  const bench::Environment environment = bench::environment();
  json["commit"] = environment.commit;
  json["plugin"] = options.plugin;
  json["seed"] = options.seed;
  json["states"] = total.states;
  json["nested_states"] = total.nested;
  json["crash_points"] = total.crash_points;
  json["failures"] = total.failures;
  json["states_per_s"] = static_cast<double>(total.states) / seconds;
  json["failure_words"] = total.failure_words;
  json["machine"] = bench::to_json(environment);
  return finish_with_json(options.json, json, total.failures == 0 ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_crashtest(CLI::App& app, Action& action) {
  auto options = std::make_shared<CrashtestOptions>();
  CLI::App* command =
      app.add_subcommand("crashtest", "Cuts the power at every point of a workload of your own");
  command
      ->add_option("FILE", options->plugin,
                   "Shared library with the workload, as flugs/crashtest.h describes it")
      ->required();
  command->add_option("--states", options->states, "States to check in total")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all random choices")->capture_default_str();
  command->add_option("--processes", options->processes, "Processes that work at the same time")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  command
      ->add_option("--pool-kb", options->pool_kilobytes,
                   "Size of the pool; each state is a copy of it")
      ->check(CLI::Range(64U, 1U << 20))
      ->capture_default_str();
  command->add_option("--slots", options->slots, "Transactions that can be open at the same time")
      ->check(CLI::Range(1U, 64U))
      ->capture_default_str();
  command
      ->add_option("--replay", options->replay,
                   "Check only the state of a failure, as it was printed")
      ->type_name("WORDS");
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace flugs::tools
