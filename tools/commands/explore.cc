#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>

#include "base/processors.h"
#include "bench/support/environment.h"
#include "tools/report/explore_job.h"
#include "tools/support/command.h"
#include "tools/support/progress_bar.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

// A job explores between kStatesPerJobMin and kStatesPerJobMax states; the next one continues
// differently.
constexpr std::uint64_t kStatesPerJobMin = 200;
// Below, crash points share the budget of their job in smaller parts.
constexpr std::uint64_t kStatesPerJobThorough = 2500;

constexpr const char* kCommand = "flugs prove explore";

struct ExploreOptions {
  std::string protocol = "all";
  std::uint64_t states = 100'000;
  std::uint64_t seed = 1;
  std::uint32_t first_round = 0;
  std::uint32_t processes = processors();
  bool mutations = false;
  bool sites = false;
  bool list = false;
  bool all = false;
  std::string replay;
  std::string json;
};

struct MutationFigures {
  std::uint64_t total = 0;
  std::uint64_t caught = 0;
  std::uint64_t removable = 0;
  std::uint64_t wrong = 0;  ///< missed, or found although said to be removable
  bench::Json list = bench::Json::array();
};

// Round 0, whole and torn, with indexes in DRAM and in the pool, and both made late.
constexpr std::uint32_t kJobsOfScript = 8;

/// The job `number` of a protocol: first its script, then random continuations of it.
crash::Exploration job_of(const crash::Protocol& protocol, std::uint32_t number, std::uint64_t seed,
                          std::uint64_t states) {
  crash::Exploration exploration;
  exploration.protocol = protocol.name;
  exploration.seed = seed;
  exploration.images_max = states;
  exploration.round = number < kJobsOfScript ? 0 : number - kJobsOfScript + 1;
  exploration.hints = number < kJobsOfScript ? number / 2 % 2 == 1 : number % 3 == 2;
  exploration.late = number < kJobsOfScript ? number / 4 == 1 : number % 5 < 2;
  exploration.tears_words = number % 2 == 1;
  exploration.at_flushes = number % 4 >= 2;
  exploration.nested_depth = number % 8 == 6 ? 3 : number % 4 == 2 ? 2 : 1;
  exploration.nested_one_in = 16U << (exploration.nested_depth - 1);
  if (states < kStatesPerJobThorough) {
    exploration.combinations_max = 16;
    exploration.random_images = 4;
  }
  return exploration;
}

/// Its round is that one.
std::uint32_t first_job(std::uint32_t round) { return round == 0 ? 0 : round + kJobsOfScript - 1; }

class Explore {
 public:
  explicit Explore(const ExploreOptions& options) : options_(options), pool_(options.processes) {
    for (const crash::Protocol& protocol : crash::protocols())
      if (options.protocol == "all" || options.protocol == protocol.name)
        runs_.push_back({&protocol, first_job(options.first_round), {}});
  }

  Status run() {
    const std::uint64_t share = options_.states / runs_.size();
    const std::uint64_t states_per_job = std::clamp(share / 4, kStatesPerJobMin, kStatesPerJobMax);
    for (std::size_t next = 0; states_ + begun_ < options_.states || !pool_.is_empty();) {
      if (states_ + begun_ >= options_.states || pool_.is_full()) {
        if (Status s = pool_.wait(); !s.ok()) return s;
        bar_.update("exploring", states_, options_.states, "states");
        continue;
      }
      Run& run = runs_[next++ % runs_.size()];
      const std::uint64_t states = std::min(states_per_job, options_.states - states_ - begun_);
      if (Status s = start(run, states); !s.ok()) return s;
    }
    return {};
  }

  Status run_mutations() {
    const auto cases = crash::mutation_cases();
    for (std::size_t next = 0; next < cases.size() || !pool_.is_empty();) {
      if (next == cases.size() || pool_.is_full()) {
        if (Status s = pool_.wait(); !s.ok()) return s;
        bar_.update("mutations", mutations_.total, cases.size(), "mutations");
        continue;
      }
      if (Status s = start(cases[next++]); !s.ok()) return s;
    }
    return {};
  }

  ExploreFigures total() const {
    ExploreFigures sum;
    for (const Run& run : runs_) sum += run.figures;
    return sum;
  }
  const MutationFigures& mutations() const { return mutations_; }

  void print() {
    bar_.clear();
    TextTable table({"protocol", "crash points", "states", "nested", "failures"});
    const auto add = [&](std::string name, const ExploreFigures& figures) {
      table.add({std::move(name), fmt::format("{}", figures.crash_points),
                 fmt::format("{}", figures.states), fmt::format("{}", figures.nested),
                 fmt::format("{}", figures.failures)});
    };
    std::size_t hidden = 0;
    for (const Run& run : runs_) {
      const ExploreFigures& figures = run.figures;
      if (options_.all || figures.states + figures.crash_points + figures.failures != 0)
        add(std::string(run.protocol->name), figures);
      else
        ++hidden;
    }
    if (runs_.size() > 1) add("all", total());
    fmt::print("{}", table.to_string());
    if (hidden != 0)
      fmt::print("{} protocols without a state are left out; --all lists them\n", hidden);
  }

  bench::Json protocols_json() const {
    bench::Json json;
    for (const Run& run : runs_) {
      const ExploreFigures& figures = run.figures;
      json[std::string(run.protocol->name)] = {{"crash_points", figures.crash_points},
                                               {"states", figures.states},
                                               {"nested", figures.nested},
                                               {"skipped", figures.skipped},
                                               {"failures", figures.failures},
                                               {"digest", figures.digest},
                                               {"seconds", figures.seconds}};
    }
    return json;
  }

 private:
  struct Run {
    const crash::Protocol* protocol;
    std::uint32_t jobs;
    ExploreFigures figures;
  };

  Status start(Run& run, std::uint64_t states) {
    const crash::Exploration job = job_of(*run.protocol, run.jobs++, options_.seed, states);
    begun_ += states;
    return pool_.start([&job] { return to_json(figures_of(job, crash::explore(job), kCommand)); },
                       [this, &run, job, states](const bench::Json& answer, int signal) {
                         begun_ -= states;
                         add(run, job, answer, signal);
                       });
  }

  void add(Run& run, const crash::Exploration& job, const bench::Json& answer, int signal) {
    const ExploreFigures figures =
        answer.is_null() ? figures_of_death(job, signal, kCommand) : figures_from(answer);
    // At least one, else a protocol that always fails would be run for ever.
    states_ += std::max<std::uint64_t>(figures.states, 1);
    if (!figures.failure_words.empty()) {
      bar_.clear();
      for (const std::string& words : figures.failure_words)
        fmt::print(stderr, "flugs: {}: {}\n", run.protocol->name, words);
    }
    run.figures += figures;
  }

  Status start(const crash::MutationCase& mutation) {
    return pool_.start(
        [this, &mutation]() -> bench::Json {
          const Result<crash::MutationResult> result = crash::judge(mutation, options_.seed);
          if (!result.ok()) return {{"error", result.status().to_string()}};
          return {{"verdict", crash::to_string(result->verdict)}, {"seconds", result->seconds}};
        },
        [this, &mutation](const bench::Json& answer, int /*signal*/) { add(mutation, answer); });
  }

  void add(const crash::MutationCase& mutation, const bench::Json& answer) {
    std::string verdict = "not judged";
    if (answer.contains("verdict")) verdict = answer["verdict"];
    ++mutations_.total;
    if (verdict == crash::to_string(crash::MutationVerdict::kCaught)) {
      ++mutations_.caught;
    } else if (verdict == crash::to_string(crash::MutationVerdict::kRemovable)) {
      ++mutations_.removable;
    } else {
      ++mutations_.wrong;
      bar_.clear();
      fmt::print(stderr, "flugs: mutation {}: {} {}\n", to_string(mutation), verdict,
                 answer.contains("error") ? std::string(answer["error"]) : std::string());
    }
    mutations_.list.push_back({{"mutation", to_string(mutation)},
                               {"protocol", mutation.protocol},
                               {"verdict", verdict},
                               {"why_removable", mutation.why_removable}});
  }

  const ExploreOptions& options_;
  std::vector<Run> runs_;
  JobPool pool_;
  ProgressBar bar_;
  std::uint64_t states_ = 0;  // checked
  std::uint64_t begun_ = 0;   // budget of jobs that run
  MutationFigures mutations_;
};

void print_sites(const ExploreFigures& figures) {
  TextTable table({"site", "calls", "lines", "clean", "repeated", "unfenced at ack", "idle"});
  for (const auto& [site, counts] : figures.sites)
    table.add({site, fmt::format("{}", counts.calls), fmt::format("{}", counts.lines),
               fmt::format("{}", counts.clean), fmt::format("{}", counts.repeated),
               fmt::format("{}", counts.unfenced), fmt::format("{}", counts.idle)});
  fmt::print("\n{}", table.to_string());
  TextTable unflushed({"left unflushed at ack", "flushed before by", "flushed next by", "lines"},
                      {0, 1, 2});
  for (const auto& [site, lines] : figures.unflushed)
    unflushed.add({site.holds, site.before, site.next, fmt::format("{}", lines)});
  fmt::print("\n{}", unflushed.to_string());
}

Status no_protocol(const std::string& name) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("no protocol '{}'; --list names them", name));
}

int replay(const ExploreOptions& options) {
  Result<crash::Exploration> exploration = crash::read_replay(options.replay);
  if (!exploration.ok()) return could_not_run(exploration.status());
  if (crash::find_protocol(exploration->protocol) == nullptr)
    return could_not_run(no_protocol(exploration->protocol));
  const ExploreFigures figures = figures_of(*exploration, crash::explore(*exploration), kCommand);
  fmt::print("{} crash points, {} states, {} failures\n", figures.crash_points, figures.states,
             figures.failures);
  for (const std::string& words : figures.failure_words) fmt::print(stderr, "flugs: {}\n", words);
  return finish_with_json(options.json, to_json(figures),
                          figures.failures == 0 ? kExitOk : kExitCheckFailed);
}

int run_command(const ExploreOptions& options) {
  if (options.list) {
    TextTable table({"protocol", "what happens"}, {0, 1});
    for (const crash::Protocol& protocol : crash::protocols())
      table.add({std::string(protocol.name), std::string(protocol.what)});
    fmt::print("{}", table.to_string());
    return kExitOk;
  }
  if (!options.replay.empty()) return replay(options);
  if (options.protocol != "all" && crash::find_protocol(options.protocol) == nullptr)
    return could_not_run(no_protocol(options.protocol));
  Explore explore(options);
  const auto start = std::chrono::steady_clock::now();
  if (Status s = explore.run(); !s.ok()) return could_not_run(s);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (options.mutations)
    if (Status s = explore.run_mutations(); !s.ok()) return could_not_run(s);
  const ExploreFigures total = explore.total();
  const MutationFigures& mutations = explore.mutations();
  const double per_core = static_cast<double>(total.states) / std::max(total.seconds, 1e-9);
  explore.print();
  if (options.sites) print_sites(total);
  fmt::print("{} states in {:.1f} s, {} per second and core; {} failures\n", total.states, seconds,
             format_count(per_core), total.failures);
  if (options.mutations)
    fmt::print("{} mutations: {} caught, {} known to be removable, {} wrong\n", mutations.total,
               mutations.caught, mutations.removable, mutations.wrong);
  bench::Json json;
  const bench::Environment environment = bench::environment();
  json["commit"] = environment.commit;
  json["protocol"] = options.protocol;
  json["seed"] = options.seed;
  json["first_round"] = options.first_round;
  json["states"] = total.states;
  json["nested_states"] = total.nested;
  json["crash_points"] = total.crash_points;
  json["failures"] = total.failures;
  json["digest"] = total.digest;
  json["mutations_total"] = mutations.total;
  json["mutations_caught"] = mutations.caught;
  json["mutations_removable"] = mutations.removable;
  json["mutations_wrong"] = mutations.wrong;
  json["states_per_s"] = static_cast<double>(total.states) / seconds;
  json["states_per_s_and_core"] = per_core;
  json["processes"] = options.processes;
  json["protocols"] = explore.protocols_json();
  json["mutations"] = mutations.list;
  json["sites"] = to_json(total)["sites"];
  json["unflushed"] = to_json(total)["unflushed"];
  json["failure_words"] = total.failure_words;
  json["machine"] = bench::to_json(environment);
  const bool is_good = total.failures == 0 && mutations.wrong == 0;
  return finish_with_json(options.json, json, is_good ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_explore(CLI::App& app, Action& action) {
  auto options = std::make_shared<ExploreOptions>();
  CLI::App* command = app.add_subcommand(
      "explore", "Opens and checks states that a power cut could leave, by protocol");
  command->add_option("--protocol", options->protocol, "A protocol from --list, or all")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--states", options->states, "States to check in total")
      ->check(CLI::Range(std::uint64_t{1'000}, std::uint64_t{1'000'000'000'000}))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all random choices")->capture_default_str();
  command
      ->add_option(
          "--first-round", options->first_round,
          "First round: 0 is the script of a protocol, every other round a random continuation")
      ->check(CLI::Range(0U, 1'000'000'000U))
      ->capture_default_str();
  command->add_option("--processes", options->processes, "Processes that work at the same time")
      ->check(CLI::Range(1U, 1024U))
      ->capture_default_str();
  command->add_flag("--mutations", options->mutations,
                    "Also make the mistakes of the catalogue, and check that each is found");
  command->add_flag("--sites", options->sites,
                    "Print flushes and fences by label, and which of them were idle");
  command->add_flag("--all", options->all, "List protocols of which no state was checked, too");
  command->add_flag("--list", options->list, "List the protocols");
  command
      ->add_option("--replay", options->replay,
                   "Check only the state of a failure, as it was printed")
      ->type_name("WORDS");
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace flugs::tools
