#include "tools/restart/restart_figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "bench/support/environment.h"
#include "bench/support/json.h"
#include "tools/children/demo_run.h"
#include "tools/restart/memory_figure.h"
#include "tools/restart/restart_points.h"
#include "tools/support/command.h"
#include "tools/support/pool_file.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr const char* kFigureNames[] = {"7a", "7b", "table-1", "8a", "8b", "memory"};
/// Steps on the axes of Figure 7: the size that varies goes up to the largest in this many equal
/// steps.
constexpr std::uint64_t kSteps = 5;

bench::Json paper_restart() {
  return {{"label", "SOFORT (paper, 8 cores, 200 ns)"},
          {"source", "Oukid et al., DaMoN 2014, section 5.3 and Table 1"},
          {"rows", 100'000'000},
          {"distinct", 10'000'000},
          {"text", "linear in the dictionaries' size, flat in the number of rows"},
          {"hash_map", {{"index_rebuild_ms", 1848}, {"rest_ms", 74}}},
          {"skip_list", {{"index_rebuild_ms", 7599}, {"rest_ms", 58}}}};
}

bench::Json paper_recovery(bool is_disk) {
  return {{"label", "SOFORT (paper, 8 cores, 200 ns)"},
          {"source", "Oukid et al., DaMoN 2014, section 5.3 and Figure 8"},
          {"variant", is_disk ? "disk" : "PMFS"},
          {"users", 4},
          {"crash_second", 15},
          {"full_speed_s", is_disk ? 18 : 1}};
}

/// The median row of a figure: what people look at first, between the points of a long run.
void print_point(const RestartPoint& point) {
  TextTable table(
      {fmt::format("{} rows, {} distinct", format_count(static_cast<double>(point.rows)),
                   format_count(static_cast<double>(point.distinct))),
       "first answer ms", "p90", "max", "loaded in s"});
  for (const RestartPointRuns& engine : point.engines) {
    if (engine.runs.empty()) continue;
    const Spread spread =
        spread_of(engine.runs, [](const RestartRun& run) { return run.first_answer; });
    table.add({engine.name, fmt::format("{:.2f}", spread.median), fmt::format("{:.2f}", spread.p90),
               fmt::format("{:.2f}", spread.max), fmt::format("{:.1f}", engine.load_seconds)});
  }
  fmt::print("{}\n", table.to_string());
  std::fflush(stdout);
}

bench::Json point_json(const RestartPoint& point, const RestartPointRuns& engine) {
  const auto spread = [&](auto get) { return to_json(spread_of(engine.runs, get)); };
  bench::Json json = {{"rows", point.rows},
                      {"distinct", point.distinct},
                      {"runs", engine.runs.size()},
                      {"interleaved", point.interleaved},
                      {"load_seconds", engine.load_seconds}};
  json["first_answer_ms"] = spread([](const RestartRun& run) { return run.first_answer; });
  json["exec_to_main_ms"] = spread([](const RestartRun& run) { return run.exec_to_main; });
  json["open_ms"] =
      spread([](const RestartRun& run) { return run.all_indexes - run.exec_to_main; });
  json["index_rebuild_ms"] = spread([](const RestartRun& run) { return run.index_rebuild; });
  json["rest_ms"] = spread([](const RestartRun& run) { return run.rest; });
  json["acknowledged_checked"] = spread(
      [](const RestartRun& run) { return static_cast<double>(run.times.acknowledged_checked); });
  bench::Json runs = bench::Json::array();
  for (const RestartRun& run : engine.runs) runs.push_back(run.first_answer);
  json["first_answer_ms_of_runs"] = runs;
  return json;
}

class RestartFiguresRun {
 public:
  RestartFiguresRun(const RestartFiguresOptions& options, const bench::RestartPlan& plan,
                    std::uint32_t runs)
      : options_(options), plan_(plan), runs_(runs), engines_(flugs_engines()) {}

  int run() {
    std::error_code error;
    std::filesystem::create_directories(options_.directory, error);
    if (error)
      return could_not_run(
          Status(StatusCode::kIoError, options_.directory + ": " + error.message()));
    find_peers();
    Status status = restarts();
    for (const bool is_disk : {false, true})
      if (status.ok()) status = recovery(is_disk);
    if (status.ok()) status = in_memory();
    if (!status.ok()) return could_not_run(status);
    plot();
    fmt::print("answers checked: {}\n", is_right_ ? "all right" : "WRONG");
    return is_right_ ? kExitOk : kExitCheckFailed;
  }

 private:
  bool is_wanted(const std::string& figure) const {
    return options_.only.empty() || std::count(options_.only.begin(), options_.only.end(), figure);
  }

  void leave_out(const std::string& engine, const Status& why) {
    left_out_.push_back({{"engine", engine}, {"why", std::string(why.message())}});
    bar_.clear();
    fmt::print("{} is left out: {}\n", engine, why.message());
  }

  void find_peers() {
    for (const std::string& name : options_.peers) {
      if (name == "none") continue;
      Result<RestartEngine> engine = peer_engine(name);
      if (engine.ok()) {
        engines_.push_back(*std::move(engine));
      } else {
        leave_out(name, engine.status());
      }
    }
  }

  Status restarts() {
    std::vector<const RestartPoint*> a;
    std::vector<const RestartPoint*> b;
    const std::uint64_t most = plan_.distinct;
    for (std::uint64_t step = 1; step <= kSteps; ++step) {
      const std::uint64_t rows = plan_.rows * step / kSteps;
      const bool is_last = step == kSteps;
      if (is_wanted("7a") && rows >= most)
        if (Status s = measure(rows, most, a); !s.ok()) return s;
      if (is_last && !is_wanted("7a") && is_wanted("table-1"))
        if (Status s = measure(rows, most, a); !s.ok()) return s;
      // The paper's Figure 7b has 10 M rows, as many as the largest dictionaries have entries.
      if (is_wanted("7b"))
        if (Status s = measure(most, std::max(most * step / kSteps, std::uint64_t{1}), b); !s.ok())
          return s;
    }
    Status status;
    if (is_wanted("7a")) status = write_restarts("7a", "restart time by rows", a);
    if (status.ok() && is_wanted("7b"))
      status = write_restarts("7b", "restart time by distinct values", b);
    if (status.ok() && is_wanted("table-1"))
      status = write_restarts("table-1", "restart time, its parts", {a.back()});
    return status;
  }

  Status measure(std::uint64_t rows, std::uint64_t distinct,
                 std::vector<const RestartPoint*>& points) {
    auto point = std::make_unique<RestartPoint>();
    point->rows = rows;
    point->distinct = distinct;
    Status status = measure_restarts(plan_, engines_, runs_, bar_, *point);
    bar_.clear();
    if (!status.ok()) return status;
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const RestartPointRuns& engine = point->engines[i];
      if (engine.status.ok()) continue;
      const bool is_wrong = engine.status.code() == StatusCode::kCorrupt;
      if (engines_[i].is_flugs() && !is_wrong) return engine.status;
      is_right_ = is_right_ && !is_wrong;
      leave_out(
          fmt::format("{} with {} rows, after {} restarts,", engine.key, rows, engine.runs.size()),
          engine.status);
    }
    print_point(*point);
    points.push_back(point.get());
    points_.push_back(std::move(point));
    return {};
  }

  /// The head that every figure has.
  bench::Json header(const std::string& figure, const std::string& title) const {
    const bench::Environment environment = bench::environment();
    bench::Json json;
    json["figure"] = figure;
    json["title"] = title;
    json["commit"] = environment.commit;
    json["machine"] = bench::to_json(environment);
    json["answers_ok"] = is_right_;
    json["left_out"] = left_out_;
    return json;
  }

  Status write_restarts(const std::string& figure, const std::string& title,
                        const std::vector<const RestartPoint*>& points) const {
    bench::Json json = header(figure, title);
    json["command"] = fmt::format(
        "flugs bench restart --figures DIR --only {} --rows {} --distinct {} --runs {} --stop {} "
        "--peers {}",
        figure, plan_.rows, plan_.distinct, runs_, plan_.killed ? "kill" : "clean",
        fmt::join(options_.peers, ","));
    json["stop"] = plan_.killed ? "kill" : "clean";
    json["runs"] = runs_;
    json["seed"] = plan_.seed;
    json["threads"] = {
        {"load", plan_.load_threads},
        {"recovery", plan_.recovery_threads == 0 ? bench::usable_cores() : plan_.recovery_threads}};
    json["scm_latency_ns"] = scm_json(plan_.scm);
    json["paper"] = paper_restart();
    json["engines"] = bench::Json::array();
    for (std::size_t i = 0; i < engines_.size(); ++i) {
      const RestartPointRuns& words = points.front()->engines[i];
      bench::Json engine = {{"key", words.key},
                            {"name", words.name},
                            {"setup", words.setup},
                            {"medium", words.medium},
                            {"guarantee", words.guarantee},
                            {"first_query_kind", words.first_query},
                            {"writers", words.writers},
                            {"points", bench::Json::array()}};
      for (const RestartPoint* point : points)
        if (!point->engines[i].runs.empty())
          engine["points"].push_back(point_json(*point, point->engines[i]));
      json["engines"].push_back(std::move(engine));
    }
    return write(figure, json);
  }

  Status recovery(bool is_disk) {
    const std::string figure = is_disk ? "8b" : "8a";
    if (!is_wanted(figure)) return {};
    bench::Json curves = bench::Json::array();
    for (const RestartEngine& engine : engines_) {
      if (!engine.keyed) continue;  // TATP needs keys
      bench::Json curve;
      Status status = recover(engine, is_disk, curve);
      is_right_ = is_right_ && status.code() != StatusCode::kCorrupt;
      if (status.ok()) {
        print_recovery(figure, curve);
        curves.push_back(std::move(curve));
      } else if (engine.is_flugs()) {
        return status;
      } else {
        leave_out(fmt::format("{} in figure {}", engine.key, figure), status);
      }
    }
    bench::Json json = header(figure, "TATP through a crash");
    json["command"] = fmt::format(
        "flugs bench restart --figures DIR --only {} --subscribers {} --users {} --seconds {} "
        "--peers {}",
        figure, options_.subscribers, options_.users, options_.seconds,
        fmt::join(options_.peers, ","));
    json["paper"] = paper_recovery(is_disk);
    json["curves"] = std::move(curves);
    return write(figure, json);
  }

  /// One engine's curve. Fails when one of its processes does; with kCorrupt when it says that an
  /// answer is wrong.
  Status recover(const RestartEngine& engine, bool is_disk, bench::Json& curve) {
    DemoOptions demo;
    demo.subscribers = options_.subscribers;
    demo.users = options_.users;
    demo.seconds_before = options_.seconds;
    demo.seconds_after = options_.seconds;
    demo.seed = plan_.seed;
    demo.index_place = engine.index_place;
    demo.program = engine.program;
    if (engine.is_flugs()) demo.scm = plan_.scm;
    if (is_disk) demo.pool = file_pool(engine);
    Result<CrashRun> crash = prepare_demo(demo);
    if (!crash.ok()) return std::move(crash).status();
    if (!crash->pool().remark().empty()) fmt::print("{}\n", crash->pool().remark());
    DemoFigures figures;
    Status status = run_demo(demo, *crash, figures);
    if (!status.ok()) return status;
    is_right_ = is_right_ && figures.audit_ok && figures.lost_acknowledged == 0;
    curve = demo_json(demo, *crash, figures);
    curve["key"] = engine.key;
    curve["name"] = engine.is_flugs() ? fmt::format("flugs {}, --index {}", FLUGS_VERSION,
                                                    to_string(engine.index_place))
                                      : std::string(crash->witness().status().engine);
    curve["writers"] = engine.is_single_writer() ? 1 : options_.users;
    return {};
  }

  /// A fresh name on a file system that is no tmpfs, as far as the user chose it.
  std::string file_pool(const RestartEngine& engine) const {
    const std::string& directory =
        options_.file_directory.empty() ? options_.directory : options_.file_directory;
    const std::string name = engine.is_flugs() ? "pool" : engine.key;
    return (std::filesystem::path(directory) / ("figure-8b." + name)).string();
  }

  /// Not of the paper, and only for those that may make control groups: so only if asked for.
  Status in_memory() {
    if (std::count(options_.only.begin(), options_.only.end(), "memory") == 0) return {};
    bench::Json runs = bench::Json::array();
    for (const RestartEngine& engine : engines_)
      for (const auto distribution :
           {bench::TatpDistribution::kUniform, bench::TatpDistribution::kNuRand}) {
        const bool is_other_flugs = engine.is_flugs() && engine.index_place != IndexPlace::kPool;
        if (!engine.keyed || is_other_flugs) continue;
        MemoryRun run;
        Status status = measure_in_memory({.path = file_pool(engine),
                                           .subscribers = options_.subscribers,
                                           .users = options_.users,
                                           .seed = plan_.seed,
                                           .distribution = distribution,
                                           .seconds = options_.seconds,
                                           .memory_bytes = options_.memory_mb << 20},
                                          engine, bar_, run);
        bar_.clear();
        if (!status.ok() && engine.is_flugs()) return status;
        if (!status.ok()) {
          leave_out(engine.key + " in figure memory", status);
          break;
        }
        print_memory(run, distribution);
        runs.push_back(to_json(run));
        runs.back()["distribution"] = to_string(distribution);
      }
    bench::Json json = header("memory", "TATP's reads in a database larger than memory");
    json["command"] = fmt::format(
        "flugs bench restart --figures DIR --only memory --subscribers {} --users {} --seconds {} "
        "--memory {} --peers {}",
        options_.subscribers, options_.users, options_.seconds, options_.memory_mb,
        fmt::join(options_.peers, ","));
    json["runs"] = std::move(runs);
    return write("memory", json);
  }

  static void print_memory(const MemoryRun& run, bench::TatpDistribution distribution) {
    fmt::print("{}, {}: database {}, memory {}: {} reads/s, {:.2f} page faults each\n", run.name,
               to_string(distribution), format_bytes(run.database_bytes),
               format_bytes(run.memory_bytes), format_count(run.reads_per_second),
               run.faults_per_read);
    std::fflush(stdout);
  }

  static void print_recovery(const std::string& figure, const bench::Json& curve) {
    const auto ms = [&](const char* key) {
      return curve[key].is_null() ? std::string("never")
                                  : fmt::format("{:.0f} ms", curve[key].get<double>());
    };
    const auto writers = curve["writers"].get<std::uint32_t>();
    fmt::print(
        "Figure {}, {}, medium {}, {}: {} transactions/s before; after SIGKILL first answer "
        "{}, full speed {}\n\n",
        figure, curve["name"].get<std::string>(), curve["medium"].get<std::string>(),
        writers == 1 ? "1 writer" : fmt::format("{} writers", writers),
        format_count(curve["before_tps"].get<double>()), ms("first_answer_ms"),
        ms("full_speed_ms"));
    std::fflush(stdout);
  }

  Status write(const std::string& figure, const bench::Json& json) const {
    const bool is_named = figure == "table-1" || figure == "memory";
    const std::string name = is_named ? figure : "figure-" + figure;
    return bench::write_json(options_.directory + "/" + name + ".json", json);
  }

  /// Without plots the data are there all the same.
  void plot() const {
    const std::string remark =
        fmt::format("the data is in {}, without plots: tools/plot_restart.py draws them from it",
                    options_.directory);
    std::error_code error;
    if (options_.plot == "none") return;
    if (!std::filesystem::exists(options_.plot, error)) {
      fmt::print("{}; {} does not exist\n", remark, options_.plot);
      return;
    }
    std::fflush(stdout);
    Result<ChildProcess> script =
        ChildProcess::start_program(options_.plot, {options_.plot, options_.directory});
    if (script.ok()) script->wait();
    if (!script.ok() || script->exit_status() != kExitOk) fmt::print("{}\n", remark);
  }

  const RestartFiguresOptions& options_;
  const bench::RestartPlan& plan_;
  std::uint32_t runs_;
  std::vector<RestartEngine> engines_;
  std::vector<std::unique_ptr<RestartPoint>> points_;
  bench::Json left_out_ = bench::Json::array();
  bool is_right_ = true;
  ProgressBar bar_;
};

}  // namespace

void add_figures_options(CLI::App& command, RestartFiguresOptions& options) {
  command
      .add_option("--figures", options.directory,
                  "Make the figures of the SOFORT paper instead, data and plots, in this directory")
      ->type_name("DIR");
  command.add_option("--only", options.only, "With --figures: only these")
      ->delimiter(',')
      ->check(CLI::IsMember(
          std::vector<std::string>(std::begin(kFigureNames), std::end(kFigureNames))));
  command
      .add_option("--peers", options.peers, "With --figures: other engines beside flugs, or none")
      ->delimiter(',')
      ->check(CLI::IsMember({"lmdb", "rocksdb", "wiredtiger", "sqlite", "duckdb", "none"}));
  command
      .add_option("--subscribers", options.subscribers,
                  "With --figures, 8a and 8b: size of TATP's population")
      ->check(CLI::Range(1u, 100'000'000u))
      ->capture_default_str();
  command.add_option("--users", options.users, "With --figures, 8a and 8b: concurrent users")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command
      .add_option("--seconds", options.seconds,
                  "With --figures, 8a and 8b: seconds before the kill, and after it")
      ->check(real_range(0.1, 1e5))
      ->capture_default_str();
  command
      .add_option("--file-directory", options.file_directory,
                  "With --figures, 8b: a directory that is not on a tmpfs")
      ->type_name("DIR")
      ->default_str("that of --figures");
  command
      .add_option("--memory", options.memory_mb,
                  "With --figures, memory: MB of each process; 0: a quarter of what its database "
                  "takes")
      ->capture_default_str();
  command.add_option("--plot", options.plot, "With --figures: the script that draws them, or none")
      ->type_name("PROGRAM")
      ->capture_default_str();
}

int run_restart_figures(const RestartFiguresOptions& options, const bench::RestartPlan& plan,
                        std::uint32_t runs) {
  return RestartFiguresRun(options, plan, runs).run();
}

}  // namespace flugs::tools
