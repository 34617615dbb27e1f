#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/environment.h"
#include "bench/random.h"
#include "bench/restart_control.h"
#include "tools/child_process.h"
#include "tools/cleanup.h"
#include "tools/command.h"
#include "tools/pool_file.h"
#include "tools/progress_bar.h"
#include "tools/restart_estimate.h"
#include "tools/tatp_options.h"
#include "tools/text_table.h"

namespace flugs::tools {

namespace {

struct RestartOptions {
  std::string pool;
  std::string estimate;
  std::uint64_t rows = 1'000'000;
  std::uint64_t distinct = 100'000;
  std::string stop = "clean";
  std::uint32_t runs = 10;
  std::string type = "int32";
  std::uint32_t threads = 0;
  std::uint32_t load_threads = default_load_threads();
  std::uint64_t seed = 1;
  IndexMode index_mode = IndexMode::kRebuild;
  std::string side = "delta";
  std::string first_query = "row";
  ScmLatency latency;
  bool keep = false;
  std::string json;
};

/// One restart, in milliseconds since right before its process was started.
struct RestartRun {
  double exec_to_main = 0;
  double all_indexes = 0;
  double first_answer = 0;
  double full_speed = 0;
  double index_rebuild = 0;
  double rest = 0;
  bench::RestartTimes times;
};

struct RestartFigures {
  bench::RestartStatus* status = nullptr;
  std::vector<RestartRun> runs;
  std::uint64_t acknowledged_checked = 0;
  bool answers_ok = false;
};

RestartRun run_of(const bench::RestartTimes& times) {
  const auto ms = [&](std::uint64_t time_ns) {
    return static_cast<double>(time_ns - times.spawned_ns) * 1e-6;
  };
  RestartRun run;
  run.times = times;
  run.exec_to_main = ms(times.main_ns);
  run.all_indexes = ms(times.opened_ns);
  run.first_answer = ms(times.first_answer_ns);
  run.full_speed = times.full_speed_ns == 0 ? -1 : ms(times.full_speed_ns);
  for (std::size_t i = 0; i < times.phase_count; ++i) {
    const std::string name = times.phases[i].name;
    if (name == "dictionary indexes" || name == "key indexes")
      run.index_rebuild += times.phases[i].us * 1e-3;
  }
  run.rest = run.first_answer - run.index_rebuild;
  return run;
}

/// Loads, stops, and restarts as often as asked for.
class RestartBenchmark {
 public:
  RestartBenchmark(const RestartOptions& options, bench::RestartControl& control,
                   const std::string& control_path)
      : options_(options),
        control_(control),
        control_path_(control_path),
        killed_(control.plan().killed),
        random_(options.seed) {}

  /// Fails when a process fails; its answers are wrong when it says kCorrupt.
  Status run(RestartFigures& figures) {
    Status status = start(true, killed_);
    if (status.ok()) status = end_life(killed_);
    for (std::uint32_t i = 0; i < options_.runs && status.ok(); ++i) {
      const bool last = i + 1 == options_.runs;
      status = start(false, killed_ && !last);
      if (status.ok()) status = end_life(killed_ && !last);
      if (!status.ok()) break;
      figures.runs.push_back(run_of(control_.status().times));
      figures.acknowledged_checked += control_.status().times.acknowledged_checked;
      bar_.update("restarting", i + 1, options_.runs);
    }
    bar_.clear();
    return status;
  }

 private:
  Status start(bool load, bool under_load) {
    control_.status().stage.store(bench::RestartStage::kStarting);
    std::vector<std::string> arguments = {"restart-child", control_path_};
    if (load) arguments.push_back("--load");
    if (under_load) arguments.push_back("--under-load");
    Result<ChildProcess> child = ChildProcess::start(std::move(arguments));
    if (!child.ok()) return std::move(child).status();
    child_ = std::move(child).value();
    return {};
  }

  /// Until the process has closed the pool, or until it was killed under load.
  Status end_life(bool kill) {
    const auto poll = std::chrono::milliseconds(1);
    const bench::RestartStatus& status = control_.status();
    while (!(kill && status.stage.load() == bench::RestartStage::kUnderLoad)) {
      if (child_.has_ended()) return kill ? unexpected_end() : expected_end();
      if (status.stage.load() == bench::RestartStage::kLoading)
        bar_.update("loading", status.rows_loaded.load(), options_.rows);
      std::this_thread::sleep_for(poll);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(random_.between(100, 300)));
    if (child_.has_ended()) return unexpected_end();
    child_.kill();
    return {};
  }

  Status expected_end() const {
    return child_.exit_status() == kExitOk ? Status() : unexpected_end();
  }
  Status unexpected_end() const {
    const int exit_status = child_.exit_status();
    const bool wrong = exit_status == kExitCheckFailed || exit_status < 0;
    return Status(wrong ? StatusCode::kCorrupt : StatusCode::kIoError,
                  "the process that had the pool open " + child_.describe_end());
  }

  const RestartOptions& options_;
  bench::RestartControl& control_;
  const std::string& control_path_;
  bool killed_;
  bench::Random random_;
  ChildProcess child_;
  ProgressBar bar_;
};

/// Median, 90th percentile and largest of a figure over all runs.
struct Spread {
  double median = 0;
  double p90 = 0;
  double max = 0;
};

template <typename Get>
Spread spread_of(const std::vector<RestartRun>& runs, const Get& get) {
  if (runs.empty()) return {};
  std::vector<double> values;
  values.reserve(runs.size());
  for (const RestartRun& run : runs) values.push_back(get(run));
  std::sort(values.begin(), values.end());
  const std::size_t count = values.size();
  const double median = (values[(count - 1) / 2] + values[count / 2]) / 2;
  const auto rank = static_cast<std::size_t>(std::ceil(0.9 * static_cast<double>(count)));
  return {median, values[rank - 1], values.back()};
}

/// What is reported of every run: key in the JSON, words in the table.
struct Figure {
  const char* key;
  const char* words;
  double (*get)(const RestartRun&);
};
constexpr Figure kFigures[] = {
    {"first_answer_ms", "first answer, from process start",
     [](const RestartRun& run) { return run.first_answer; }},
    {"index_rebuild_ms", "of this: index rebuild",
     [](const RestartRun& run) { return run.index_rebuild; }},
    {"rest_ms", "of this: rest", [](const RestartRun& run) { return run.rest; }},
    {"exec_to_main_ms", "in the rest: start of the process",
     [](const RestartRun& run) { return run.exec_to_main; }},
    {"all_indexes_ms", "all indexes are there",
     [](const RestartRun& run) { return run.all_indexes; }},
    {"full_speed_ms", "point selects at full speed (-1: not within a second)",
     [](const RestartRun& run) { return run.full_speed; }},
    {"select_scan_ms", "apart: select where c1 = v, no key",
     [](const RestartRun& run) { return run.times.select_scan_ms; }},
    {"sum_ms", "apart: select sum(c1)", [](const RestartRun& run) { return run.times.sum_ms; }},
    {"sum_again_ms", "apart: the same again",
     [](const RestartRun& run) { return run.times.sum_again_ms; }},
    {"minor_faults", "page faults until the first answer",
     [](const RestartRun& run) { return static_cast<double>(run.times.minor_faults); }},
    {"major_faults", "of these: from disk",
     [](const RestartRun& run) { return static_cast<double>(run.times.major_faults); }},
};

const char* first_query_kind(const RestartOptions& options) {
  return options.first_query == "key" ? "point select by primary key" : "point select by row id";
}

bench::Json phases_json(const RestartFigures& figures) {
  bench::Json phases = bench::Json::array();
  if (figures.runs.empty()) return phases;
  const bench::RestartTimes& last = figures.runs.back().times;
  for (std::size_t i = 0; i < last.phase_count; ++i) {
    const Spread us = spread_of(figures.runs, [i](const RestartRun& run) {
      return i < run.times.phase_count ? run.times.phases[i].us : 0;
    });
    phases.push_back({{"name", last.phases[i].name},
                      {"median_ms", us.median * 1e-3},
                      {"max_ms", us.max * 1e-3},
                      {"items", last.phases[i].items}});
  }
  return phases;
}

bench::Json figures_json(const RestartOptions& options, const RestartFigures& figures) {
  const bench::Environment environment = bench::environment();
  const bench::RestartStatus& status = *figures.status;
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = status.medium;
  json["guarantee"] = status.guarantee;
  json["rows"] = options.rows;
  json["distinct"] = options.distinct;
  json["type"] = options.type;
  json["index"] = to_string(options.index_mode);
  json["side"] = options.side;
  json["first_query_kind"] = first_query_kind(options);
  json["stop"] = options.stop;
  json["runs"] = figures.runs.size();
  json["seed"] = options.seed;
  for (const Figure& figure : kFigures) {
    const Spread spread = spread_of(figures.runs, figure.get);
    json[figure.key] = {{"median", spread.median}, {"p90", spread.p90}, {"max", spread.max}};
  }
  json["answers_ok"] = figures.answers_ok;
  json["acknowledged_checked"] = figures.acknowledged_checked;
  json["load_rows_per_s"] = static_cast<double>(options.rows) / std::max(status.load_seconds, 1e-9);
  json["load_threads"] = options.load_threads;
  json["pool_bytes"] = status.pool_bytes;
  json["pool_bytes_per_row"] =
      static_cast<double>(status.pool_used_bytes) / static_cast<double>(options.rows);
  json["selects_per_s"] =
      spread_of(figures.runs, [](const RestartRun& run) { return run.times.selects_per_s; }).median;
  json["dram_bytes"] = figures.runs.empty() ? 0 : figures.runs.back().times.dram_bytes;
  json["recovery_threads"] = figures.runs.empty() ? 0 : figures.runs.back().times.threads;
  json["phases"] = phases_json(figures);
  json["machine"] = bench::to_json(environment);
  return json;
}

void print_figures(const RestartOptions& options, const RestartFigures& figures,
                   const std::string& pool_path) {
  const bench::RestartStatus& status = *figures.status;
  fmt::print(
      "restart: {} rows, {} distinct values in each of 4 {} columns, in {}; indexes {}, stop "
      "{}; first query: {}\n",
      options.rows, options.distinct, options.type, options.side, to_string(options.index_mode),
      options.stop, first_query_kind(options));
  fmt::print("pool: {}, medium {}: {}\n", pool_path, status.medium, status.guarantee);
  fmt::print("loaded in {:.2f} s ({} rows/s, {} threads); {:.1f} bytes a row\n\n",
             status.load_seconds,
             format_count(static_cast<double>(options.rows) / std::max(status.load_seconds, 1e-9)),
             options.load_threads,
             static_cast<double>(status.pool_used_bytes) / static_cast<double>(options.rows));
  TextTable table({fmt::format("{} restarts, ms (faults: count)", figures.runs.size()), "median",
                   "p90", "max"});
  for (const Figure& figure : kFigures) {
    const Spread spread = spread_of(figures.runs, figure.get);
    table.add({figure.words, fmt::format("{:.2f}", spread.median),
               fmt::format("{:.2f}", spread.p90), fmt::format("{:.2f}", spread.max)});
  }
  fmt::print("{}\n", table.to_string());
  TextTable phases({"phase of recovery", "median ms", "max ms", "items"});
  for (const bench::Json& phase : phases_json(figures))
    phases.add({phase["name"].get<std::string>(),
                fmt::format("{:.3f}", phase["median_ms"].get<double>()),
                fmt::format("{:.3f}", phase["max_ms"].get<double>()),
                fmt::format("{}", phase["items"].get<std::uint64_t>())});
  fmt::print("{}\n", phases.to_string());
  fmt::print("answers checked: {}", figures.answers_ok ? "all right" : "WRONG");
  if (options.stop == "kill")
    fmt::print("; {} acknowledged transactions under load among them",
               figures.acknowledged_checked);
  fmt::print("\n");
}

bench::RestartPlan plan_of(const RestartOptions& options) {
  bench::RestartPlan plan;
  plan.rows = options.rows;
  plan.distinct = options.distinct;
  plan.seed = options.seed;
  plan.type = options.type == "int64" ? Type::kInt64 : Type::kInt32;
  plan.killed = options.stop == "kill";
  plan.load_threads = options.load_threads;
  plan.recovery_threads = options.threads;
  plan.index_mode = options.index_mode;
  if (options.side == "main") plan.side = bench::RestartSide::kMain;
  if (options.side == "half") plan.side = bench::RestartSide::kHalf;
  plan.keyed = options.first_query == "key";
  plan.writers = plan.killed ? 2 : 0;
  plan.scm_read_ns = options.latency.read_ns;
  plan.scm_write_ns = options.latency.write_ns;
  return plan;
}

int run_command(const RestartOptions& options) {
  if (options.distinct > options.rows)
    return could_not_run(Status(StatusCode::kInvalidArgument,
                                fmt::format("--distinct {} cannot be more than --rows {}",
                                            options.distinct, options.rows)));
  constexpr std::uint64_t kControlBytes = std::uint64_t{256} << 20;
  // A row is 32 to 40 bytes, a dictionary entry with its hint at most 48, and there is some space
  // ahead. A key takes 8 bytes in the row and at most 24 in its index; a merge has both.
  const std::uint64_t row_bytes =
      (options.first_query == "key" ? 72u : 40u) + (options.side == "delta" ? 0u : 40u);
  const std::uint64_t bytes = row_bytes * options.rows +
                              bench::kRestartColumns * 48 * options.distinct +
                              (std::uint64_t{768} << 20);
  Result<PoolFile> pool = PoolFile::choose(options.pool, options.keep, bytes + kControlBytes);
  if (!pool.ok()) return could_not_run(pool.status());
  if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
  bench::RestartPlan plan = plan_of(options);
  if (pool->existed())
    return could_not_run(
        Status(StatusCode::kAlreadyExists,
               pool->path() + " exists: a pool that is going to be crashed is made afresh"));
  if (pool->path().size() >= sizeof plan.pool_path)
    return could_not_run(Status(StatusCode::kInvalidArgument, "the pool's path is too long"));
  pool->path().copy(plan.pool_path, sizeof plan.pool_path - 1);
  const TemporaryFile control_file(fresh_shared_path(".restart", kControlBytes));
  Result<bench::RestartControl> control = bench::RestartControl::create(control_file.path(), plan);
  if (!control.ok()) return could_not_run(control.status());
  RestartFigures figures;
  figures.status = &control->status();
  const Status status = RestartBenchmark(options, *control, control_file.path()).run(figures);
  if (!status.ok() && status.code() != StatusCode::kCorrupt) return could_not_run(status);
  if (!status.ok()) fmt::print(stderr, "flugs: {}\n", status.to_string());
  figures.answers_ok = status.ok();
  print_figures(options, figures, pool->path());
  return finish_with_json(options.json, figures_json(options, figures),
                          figures.answers_ok ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_restart(CLI::App& app, Action& action) {
  auto options = std::make_shared<RestartOptions>();
  CLI::App* command = app.add_subcommand(
      "restart", "Restart time: first answer, index rebuild and rest after a clean stop or a kill");
  command->add_option("--pool", options->pool, "Pool to make; removed afterwards")
      ->type_name("PATH");
  command
      ->add_option("--estimate", options->estimate,
                   "Say instead what opening this pool would find to do, and how long that takes")
      ->type_name("POOL");
  command->add_option("--rows", options->rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}))
      ->capture_default_str();
  command->add_option("--distinct", options->distinct, "Distinct values in each of its 4 columns")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}))
      ->capture_default_str();
  command->add_option("--stop", options->stop, "How each process ends: closes, or dies under load")
      ->check(CLI::IsMember({"clean", "kill"}))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Restarts")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
  command->add_option("--type", options->type, "Of the columns")
      ->check(CLI::IsMember({"int32", "int64"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that rebuild; 0: one per processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command->add_option("--load-threads", options->load_threads, "Threads that load the table")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of all values")->capture_default_str();
  add_scm_latency_option(*command, options->latency);
  add_index_option(*command, options->index_mode);
  command
      ->add_option("--side", options->side,
                   "Where the rows are: in delta, merged into main, or the first half merged")
      ->check(CLI::IsMember({"delta", "main", "half"}))
      ->capture_default_str();
  command
      ->add_option("--first-query", options->first_query,
                   "Point select by row id, or by a primary key, which the table gets then")
      ->check(CLI::IsMember({"row", "key"}))
      ->capture_default_str();
  command->add_flag("--keep", options->keep, "Do not remove the pool");
  command->add_option("--json", options->json, "Write the results to this file")->type_name("FILE");
  command->callback([options, &action] {
    action = [options] {
      if (!options->estimate.empty())
        return run_restart_estimate(options->estimate, options->threads, options->json);
      Cleanup::install();
      return run_command(*options);
    };
  });
}

}  // namespace flugs::tools
