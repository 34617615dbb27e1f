// The cost of cache lines on this machine, and what follows for machines with many cores
// (docs/scaling.md).

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bench/scaling/line_costs.h"
#include "bench/scaling/scaling_model.h"
#include "bench/support/environment.h"
#include "bench/tatp/tatp_request.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct ScalingOptions {
  double seconds = 2;
  std::string alone;
  std::string alone_processors;
  std::string counts;
  std::vector<unsigned> cores = {1, 2, 16, 60, 240, 1000};
  unsigned cores_per_socket = 15;
  double remote_line_ns = 300;
  double line_read_ns = 10;
  std::string json;
};

Result<bench::Json> read_json(const std::string& path) {
  std::ifstream file(path);
  if (!file) return Status(StatusCode::kNotFound, path + ": cannot be read");
  bench::Json json = bench::Json::parse(file, nullptr, false);
  if (json.is_discarded()) return Status(StatusCode::kInvalidArgument, path + ": not JSON");
  return json;
}

/// A number of a file that another run has written.
Result<double> number_in(const bench::Json& json, const std::string& file,
                         const std::string& place) {
  const bench::Json::json_pointer pointer(place);
  if (!json.contains(pointer) || !json.at(pointer).is_number())
    return Status(StatusCode::kInvalidArgument, fmt::format("{}: no number at {}", file, place));
  return json.at(pointer).get<double>();
}

Result<double> transaction_ns(const std::string& path) {
  const Result<bench::Json> json = read_json(path);
  if (!json.ok()) return json.status();
  const Result<double> users = number_in(*json, path, "/users");
  if (!users.ok()) return users.status();
  const Result<double> tps = number_in(*json, path, "/executed_tps");
  if (!tps.ok()) return tps.status();
  if (*users != 1 || *tps <= 0)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format(
            "{}: expected a run with one user, found {} users with {} transactions per second",
            path, *users, *tps));
  return 1e9 / *tps;
}

Status read_counts(const std::string& path, bench::ScalingInputs& inputs) {
  const Result<bench::Json> json = read_json(path);
  if (!json.ok()) return json.status();
  double executed = 0;
  double committed = 0;
  for (std::size_t i = 0; i < bench::kTatpTypes; ++i) {
    const std::string place = fmt::format("/transactions/{}", bench::kTatpTypeNames[i]);
    const Result<double> all = number_in(*json, path, place + "/executed");
    const Result<double> done = number_in(*json, path, place + "/found");
    if (!all.ok()) return all.status();
    if (!done.ok()) return done.status();
    executed += *all;
    if (writes(static_cast<bench::TatpType>(i))) committed += *done;
  }
  inputs.write_share = executed > 0 ? committed / executed : 0;
  const std::string all = "/contended_per_transaction/all";
  for (const char* kind : {"contended_writes", "contended_reads"}) {
    const Result<double> lines = number_in(*json, path, fmt::format("{}/all/{}", all, kind));
    if (!lines.ok()) return lines.status();
    const Result<double> clock = number_in(*json, path, fmt::format("{}/clock/{}", all, kind));
    inputs.lines_of_two += *lines - (clock.ok() ? *clock : 0);
  }
  return {};
}

Result<bench::ScalingInputs> read_inputs(const ScalingOptions& options,
                                         const bench::LineCosts& costs) {
  bench::ScalingInputs inputs;
  inputs.line_ns = costs.transfer_ns;
  inputs.remote_line_ns = options.remote_line_ns;
  inputs.line_read_ns = options.line_read_ns;
  inputs.cores_per_socket = options.cores_per_socket;
  const Result<double> alone = transaction_ns(options.alone);
  if (!alone.ok()) return alone.status();
  inputs.transaction_ns = *alone;
  if (!options.alone_processors.empty()) {
    const Result<double> other = transaction_ns(options.alone_processors);
    if (!other.ok()) return other.status();
    inputs.processor_clock_ns = *other - *alone;
  }
  if (Status s = read_counts(options.counts, inputs); !s.ok()) return s;
  return inputs;
}

bench::Json to_json(const bench::LineCosts& costs) {
  return {{"rmw_own_ns", costs.rmw_own_ns},   {"rmw_shared_ns", costs.rmw_shared_ns},
          {"transfer_ns", costs.transfer_ns}, {"read_time_ns", costs.read_time_ns},
          {"times_told", costs.times_told},   {"backwards", costs.backwards}};
}

bench::Json to_json(const bench::ScalingInputs& inputs) {
  return {{"transaction_ns", inputs.transaction_ns},
          {"write_share", inputs.write_share},
          {"lines_of_two", inputs.lines_of_two},
          {"line_ns", inputs.line_ns},
          {"remote_line_ns", inputs.remote_line_ns},
          {"line_read_ns", inputs.line_read_ns},
          {"processor_clock_ns", inputs.processor_clock_ns},
          {"cores_per_socket", inputs.cores_per_socket}};
}

bench::Json predict_and_print(const ScalingOptions& options, const bench::ScalingInputs& inputs) {
  fmt::print(
      "a transaction alone {:.0f} ns, {:.1f} % commit, {:.2f} lines of two users besides the "
      "clock's\n",
      inputs.transaction_ns, 100 * inputs.write_share, inputs.lines_of_two);
  bench::Json points = bench::Json::array();
  TextTable table({"cores", "line ns", "counter: tps", "per core", "waits for it ns",
                   "processors: tps", "per core"},
                  {});
  for (const unsigned cores : options.cores) {
    const bench::ScalingPoint counter = predict(inputs, cores, CommitClock::kCounter);
    const bench::ScalingPoint processors = predict(inputs, cores, CommitClock::kProcessors);
    table.add({std::to_string(cores), fmt::format("{:.0f}", counter.line_ns),
               format_count(counter.per_second), format_count(counter.per_core()),
               fmt::format("{:.0f}", counter.clock_ns), format_count(processors.per_second),
               format_count(processors.per_core())});
    points.push_back({{"cores", cores},
                      {"line_ns", counter.line_ns},
                      {"lines", counter.lines},
                      {"counter",
                       {{"tps", counter.per_second},
                        {"tps_per_core", counter.per_core()},
                        {"clock_ns", counter.clock_ns},
                        {"bound_tps", counter.bound}}},
                      {"processors",
                       {{"tps", processors.per_second}, {"tps_per_core", processors.per_core()}}}});
  }
  fmt::print("{}", table.to_string());
  return points;
}

int run_command(const ScalingOptions& options) {
  const Result<bench::LineCosts> costs = bench::measure_line_costs(options.seconds);
  if (!costs.ok()) return could_not_run(costs.status());
  fmt::print(
      "read-modify-write: {:.1f} ns of a line of one's own, {:.1f} ns of one that two threads "
      "use\nline to the other processor: {:.0f} ns; reading the time: {:.1f} ns; told later than "
      "read: {} of {} times\n",
      costs->rmw_own_ns, costs->rmw_shared_ns, costs->transfer_ns, costs->read_time_ns,
      costs->backwards, costs->times_told);
  const bench::Environment environment = bench::environment();
  bench::Json json = {{"commit", environment.commit}, {"lines", to_json(*costs)}};
  if (!options.alone.empty()) {
    const Result<bench::ScalingInputs> inputs = read_inputs(options, *costs);
    if (!inputs.ok()) return could_not_run(inputs.status());
    json["inputs"] = to_json(*inputs);
    json["model"] = predict_and_print(options, *inputs);
  }
  json["machine"] = bench::to_json(environment);
  return finish_with_json(options.json, json, costs->backwards == 0 ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_scaling(CLI::App& app, Action& action) {
  auto options = std::make_shared<ScalingOptions>();
  CLI::App* command = app.add_subcommand(
      "scaling", "Measures cache lines between processors; models TATP on many cores");
  command->add_option("--seconds", options->seconds, "Seconds of measuring")
      ->check(real_range(0.01, 3600))
      ->capture_default_str();
  CLI::Option* alone =
      command->add_option("--tatp", options->alone, "JSON of `flugs bench tatp --users 1`")
          ->type_name("FILE");
  command
      ->add_option("--tatp-processors", options->alone_processors,
                   "JSON of the same command with `--clock processors`")
      ->type_name("FILE")
      ->needs(alone);
  CLI::Option* counts =
      command
          ->add_option("--counts", options->counts,
                       "JSON of `flugs bench tatp --users 2` by a build that counts accesses")
          ->type_name("FILE")
          ->needs(alone);
  alone->needs(counts);
  command->add_option("--cores", options->cores, "Numbers of cores to model")
      ->delimiter(',')
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  command->add_option("--cores-per-socket", options->cores_per_socket, "Cores in each socket")
      ->check(CLI::Range(1U, 100'000U))
      ->capture_default_str();
  command
      ->add_option("--remote-line-ns", options->remote_line_ns,
                   "Nanoseconds until a line comes from another socket")
      ->check(real_range(1, 1e6))
      ->capture_default_str();
  command
      ->add_option("--line-read-ns", options->line_read_ns,
                   "Nanoseconds between two cores that get the same line to read")
      ->check(real_range(0, 1e6))
      ->capture_default_str();
  add_json_option(*command, options->json);
  command->callback([options, &action] { action = [options] { return run_command(*options); }; });
}

}  // namespace flugs::tools
