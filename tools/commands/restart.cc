#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/restart/restart_control.h"
#include "bench/support/environment.h"
#include "tools/restart/restart_figures.h"
#include "tools/restart/restart_run.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/progress_bar.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

struct RestartOptions {
  RestartFiguresOptions figures;
  std::string pool;
  std::uint64_t rows = 1'000'000;
  std::uint64_t distinct = 100'000;
  std::uint32_t tables = 1;
  std::string stop = "clean";
  std::uint32_t runs = 10;
  std::string type = "int32";
  std::uint32_t threads = 0;
  std::uint32_t load_threads = default_load_threads();
  std::uint64_t seed = 1;
  IndexPlace index_place = kDefaultIndexPlace;
  std::string side = "delta";
  std::string first_query = "row";
  std::string ready = "first-answer";
  bench::ScmModel scm;
  bool keep = false;
  std::string json;
};

struct RestartFigures {
  bench::RestartStatus* status = nullptr;
  std::vector<RestartRun> runs;
  std::uint64_t acknowledged_checked = 0;
  bool answers_ok = false;
};

/// Loads, stops, and restarts as often as asked for. Fails when a process fails; its answers are
/// wrong when it says kCorrupt.
Status run_restarts(RestartLives& lives, std::uint32_t runs, RestartFigures& figures) {
  ProgressBar bar;
  Status status = lives.load(bar);
  for (std::uint32_t i = 0; i < runs && status.ok(); ++i) {
    Result<RestartRun> run = lives.restart(i + 1 == runs, bar);
    if (!run.ok()) return std::move(run).status();
    figures.acknowledged_checked += run->times.acknowledged_checked;
    figures.runs.push_back(*std::move(run));
    bar.update("restarting", i + 1, runs);
  }
  return status;
}

/// A figure that is reported of every run: key in the JSON, words in the table.
struct Figure {
  const char* key;
  const char* words;
  double (*get)(const RestartRun&);
  const char* unit = "ms";
};

std::string shown(const Figure& figure, double value) {
  if (value < 0) return "-";
  return figure.unit == std::string_view("ms") ? fmt::format("{:.2f}", value)
                                               : fmt::format("{:.0f}", value);
}

constexpr Figure kFigures[] = {
    {"first_answer_ms", "first answer, from process start",
     [](const RestartRun& run) { return run.first_answer; }},
    {"index_rebuild_ms", "of this: index rebuild",
     [](const RestartRun& run) { return run.index_rebuild; }},
    {"rest_ms", "of this: rest", [](const RestartRun& run) { return run.rest; }},
    {"exec_to_main_ms", "of all: start of the process, until main",
     [](const RestartRun& run) { return run.exec_to_main; }},
    {"open_ms", "of all: opening", [](const RestartRun& run) { return run.open; }},
    {"query_ms", "of all: the query", [](const RestartRun& run) { return run.query; }},
    {"all_indexes_ms", "all indexes are there",
     [](const RestartRun& run) { return run.all_indexes; }},
    {"later_rebuild_ms", "of this: made after opening",
     [](const RestartRun& run) { return run.times.later_ms; }},
    {"warm_ms", "meanwhile: pages entered into page tables",
     [](const RestartRun& run) { return run.times.warm_ms; }},
    {"full_speed_ms", "point selects at full speed (-: not within a second)",
     [](const RestartRun& run) { return run.full_speed; }},
    {"select_scan_ms", "apart: select where c1 = v, no key",
     [](const RestartRun& run) { return run.times.select_scan_ms; }},
    {"sum_ms", "apart: select sum(c1)", [](const RestartRun& run) { return run.times.sum_ms; }},
    {"sum_again_ms", "apart: the same again",
     [](const RestartRun& run) { return run.times.sum_again_ms; }},
    {"minor_faults", "page faults until the first answer",
     [](const RestartRun& run) { return static_cast<double>(run.times.minor_faults); }, "faults"},
    {"major_faults", "of these: from disk",
     [](const RestartRun& run) { return static_cast<double>(run.times.major_faults); }, "faults"},
};

/// Speed of making indexes after opening; 0: none were made.
double later_entries_per_s(const RestartRun& run) {
  if (run.times.later_entries == 0) return 0;
  return static_cast<double>(run.times.later_entries) * 1e3 / std::max(run.times.later_ms, 1e-3);
}

const char* first_query_kind(const RestartOptions& options) {
  if (options.first_query == "sum") return "sum(c1) of all rows";
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
  json["tables"] = options.tables;
  json["type"] = options.type;
  json["index"] = to_string(options.index_place);
  json["side"] = options.side;
  json["ready"] = options.ready;
  json["scm_latency_ns"] = scm_json(options.scm);
  json["first_query_kind"] = first_query_kind(options);
  json["stop"] = options.stop;
  json["runs"] = figures.runs.size();
  json["seed"] = options.seed;
  for (const Figure& figure : kFigures) {
    json[figure.key] = to_json(spread_of(figures.runs, figure.get));
  }
  json["later_rebuild_entries_per_s"] = to_json(spread_of(figures.runs, later_entries_per_s));
  json["answers_ok"] = figures.answers_ok;
  json["acknowledged_checked"] = figures.acknowledged_checked;
  json["load_rows_per_s"] = static_cast<double>(options.rows) / std::max(status.load_seconds, 1e-9);
  json["load_threads"] = options.load_threads;
  json["pool_bytes"] = status.pool_bytes;
  json["pool_used_bytes"] = status.pool_used_bytes;
  json["pool_bytes_per_row"] =
      static_cast<double>(status.pool_used_bytes) / static_cast<double>(options.rows);
  json["selects_per_s"] =
      spread_of(figures.runs, [](const RestartRun& run) { return run.times.selects_per_s; }).median;
  json["dram_bytes"] = figures.runs.empty() ? 0 : figures.runs.back().times.dram_bytes;
  json["warmed_bytes"] = figures.runs.empty() ? 0 : figures.runs.back().times.warmed_bytes;
  json["recovery_threads"] = figures.runs.empty() ? 0 : figures.runs.back().times.threads;
  json["phases"] = phases_json(figures);
  json["machine"] = bench::to_json(environment);
  return json;
}

void print_figures(const RestartOptions& options, const RestartFigures& figures,
                   const std::string& pool_path) {
  const bench::RestartStatus& status = *figures.status;
  fmt::print(
      "restart: {} rows, {} distinct values in each of 4 {} columns, in {}; indexes {}, ready: {}, "
      "stop {}; first query: {}\n",
      options.rows, options.distinct, options.type, options.side, to_string(options.index_place),
      options.ready, options.stop, first_query_kind(options));
  fmt::print("pool: {}, medium {}: {}\n", pool_path, status.medium, status.guarantee);
  fmt::print("loaded in {:.2f} s ({} rows/s, {} threads); {:.1f} bytes a row\n\n",
             status.load_seconds,
             format_count(static_cast<double>(options.rows) / std::max(status.load_seconds, 1e-9)),
             options.load_threads,
             static_cast<double>(status.pool_used_bytes) / static_cast<double>(options.rows));
  TextTable table({fmt::format("{} restarts", figures.runs.size()), "unit", "median", "p90", "max"},
                  {0, 1});
  for (const Figure& figure : kFigures) {
    const Spread spread = spread_of(figures.runs, figure.get);
    table.add({figure.words, figure.unit, shown(figure, spread.median), shown(figure, spread.p90),
               shown(figure, spread.max)});
  }
  fmt::print("{}", table.to_string());
  if (const Spread later = spread_of(figures.runs, later_entries_per_s); later.max > 0)
    fmt::print("made after opening: {} entries a second\n", format_count(later.median));
  fmt::print("\n");
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
  plan.tables = options.tables;
  plan.seed = options.seed;
  plan.type = options.type == "int64" ? Type::kInt64 : Type::kInt32;
  plan.killed = options.stop == "kill";
  plan.load_threads = options.load_threads;
  plan.recovery_threads = options.threads;
  plan.index_place = options.index_place;
  if (options.ready == "indexes-built") plan.ready = Ready::kIndexesBuilt;
  if (options.side == "main") plan.side = bench::RestartSide::kMain;
  if (options.side == "half") plan.side = bench::RestartSide::kHalf;
  plan.keyed = options.first_query == "key";
  plan.sums_first = options.first_query == "sum";
  plan.writers = plan.killed ? 2 : 0;
  plan.scm = options.scm;
  return plan;
}

Status check(const RestartOptions& options) {
  if (options.distinct <= options.rows) return {};
  return Status(
      StatusCode::kInvalidArgument,
      fmt::format("--distinct {} cannot be more than --rows {}", options.distinct, options.rows));
}

/// Options that are not given are as in the paper: killed, by key, a tenth as many values as rows.
int run_figures(const CLI::App& command, RestartOptions options) {
  if (command.count("--rows") == 0) options.rows = 10'000'000;
  if (command.count("--distinct") == 0)
    options.distinct = std::max(options.rows / 10, std::uint64_t{1});
  if (command.count("--stop") == 0) options.stop = "kill";
  for (const char* given :
       {"--type", "--side", "--index", "--tables", "--first-query", "--ready", "--pool", "--json"})
    if (command.count(given) != 0)
      return could_not_run(Status(StatusCode::kInvalidArgument,
                                  fmt::format("{} cannot be used with --figures", given)));
  options.first_query = "key";
  if (Status status = check(options); !status.ok()) return could_not_run(status);
  bench::RestartPlan plan = plan_of(options);
  plan.to_full_speed = false;
  return run_restart_figures(options.figures, plan, options.runs);
}

int run_command(const RestartOptions& options) {
  if (Status status = check(options); !status.ok()) return could_not_run(status);
  bench::RestartPlan plan = plan_of(options);
  Result<PoolFile> pool =
      PoolFile::choose(options.pool, options.keep, restart_pool_bytes(plan) + kRestartControlBytes);
  if (!pool.ok()) return could_not_run(pool.status());
  if (!pool->remark().empty()) fmt::print("{}\n", pool->remark());
  if (pool->existed())
    return could_not_run(Status(StatusCode::kAlreadyExists,
                                pool->path() + " exists: name a path that does not exist, because "
                                               "the run makes a new pool and crashes it"));
  if (pool->path().size() >= sizeof plan.pool_path)
    return could_not_run(Status(StatusCode::kInvalidArgument, "the pool's path is too long"));
  pool->path().copy(plan.pool_path, sizeof plan.pool_path - 1);
  Result<RestartLives> lives = RestartLives::prepare("", plan);
  if (!lives.ok()) return could_not_run(lives.status());
  RestartFigures figures;
  figures.status = &lives->status();
  const Status status = run_restarts(*lives, options.runs, figures);
  if (!status.ok() && status.code() != StatusCode::kCorrupt) return could_not_run(status);
  if (!status.ok()) fmt::print(stderr, "flugs: {}\n", status.to_string());
  figures.answers_ok = status.ok();
  print_figures(options, figures, pool->path());
  return finish_with_json(options.json, figures_json(options, figures),
                          figures.answers_ok ? kExitOk : kExitCheckFailed);
}

/// Options that decide what the first answer must wait for.
void add_point_options(CLI::App& command, RestartOptions& options) {
  command
      .add_option("--side", options.side,
                  "Place of the rows: in delta, merged into main, or the first half merged")
      ->check(CLI::IsMember({"delta", "main", "half"}))
      ->capture_default_str();
  command
      .add_option(
          "--first-query", options.first_query,
          "Point select by row id, point select by primary key (adds one to the table), or a sum")
      ->check(CLI::IsMember({"row", "key", "sum"}))
      ->capture_default_str();
  add_ready_option(command, options.ready);
}

}  // namespace

void add_restart(CLI::App& app, Action& action) {
  auto options = std::make_shared<RestartOptions>();
  CLI::App* command = app.add_subcommand(
      "restart", "Measures restarts after stops or kills; draws the paper's figures");
  add_new_pool_options(*command, options->pool, &options->keep);
  command->add_option("--rows", options->rows, "Rows of the table")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}))
      ->capture_default_str();
  command->add_option("--distinct", options->distinct, "Distinct values in each of its 4 columns")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{4'000'000'000}))
      ->capture_default_str();
  command
      ->add_option("--tables", options->tables,
                   "Tables, each with --rows rows; the queries read the first table")
      ->check(CLI::Range(1u, 511u))
      ->capture_default_str();
  command->add_option("--stop", options->stop, "How each process ends: closes, or dies under load")
      ->check(CLI::IsMember({"clean", "kill"}))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Restarts")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
  command->add_option("--type", options->type, "Type of the columns")
      ->check(CLI::IsMember({"int32", "int64"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "Threads that rebuild; 0: one per processor")
      ->check(CLI::Range(0u, 1024u))
      ->capture_default_str();
  command->add_option("--load-threads", options->load_threads, "Threads that load the table")
      ->check(CLI::Range(1u, 256u))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all values")->capture_default_str();
  add_scm_options(*command, options->scm);
  add_index_option(*command, options->index_place);
  add_point_options(*command, *options);
  add_figures_options(*command, options->figures);
  add_json_option(*command, options->json);
  run_when_chosen(*command, action, [options, command] {
    if (command->count("--distinct") == 0)
      options->distinct = std::min(options->distinct, options->rows);
    if (!options->figures.directory.empty()) return run_figures(*command, *options);
    for (const char* given : {"--only", "--peers", "--subscribers", "--users", "--seconds",
                              "--file-directory", "--plot"})
      if (command->count(given) != 0)
        return could_not_run(Status(StatusCode::kInvalidArgument,
                                    fmt::format("{} can be used with --figures only", given)));
    return run_command(*options);
  });
}

}  // namespace flugs::tools
