#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bench/clock.h"
#include "bench/environment.h"
#include "tools/cleanup.h"
#include "tools/command.h"
#include "tools/crash_run.h"
#include "tools/curve.h"
#include "tools/progress_bar.h"
#include "tools/tatp_options.h"
#include "tools/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr auto kSampleInterval = std::chrono::milliseconds(10);
/// Full speed is this share of the mean before the crash, over this long.
constexpr double kFullSpeedShare = 0.95;
constexpr std::uint64_t kFullSpeedWindowNs = 20 * kMsInNs;
constexpr std::size_t kCurveWidth = 72;

struct DemoOptions {
  std::string pool;
  std::uint32_t subscribers = 200'000;
  std::uint32_t users = 4;
  double seconds_before = 5;
  double seconds_after = 5;
  std::uint64_t seed = 1;
  ScmLatency latency;
  IndexMode index_mode = IndexMode::kRebuild;
  bool keep = false;
  std::string json;
};

struct DemoFigures {
  std::vector<ThroughputSample> samples;
  std::uint64_t begin_ns = 0;  ///< TATP runs
  std::uint64_t kill_ns = 0;   ///< SIGKILL is sent
  std::uint64_t gone_ns = 0;   ///< the killed process is gone
  std::uint64_t main_ns = 0;   ///< the next one has entered main
  std::uint64_t opened_ns = 0;
  std::uint64_t answer_ns = 0;
  std::uint64_t full_speed_ns = 0;  ///< 0: never
  std::uint64_t completed = 0;      ///< transactions in flight, by the restart after the kill
  std::uint64_t undone = 0;
  double before_tps = 0;
  double after_tps = 0;
  std::uint64_t audited = 0;
  std::uint64_t lost_acknowledged = 0;
  bool audit_ok = false;
  bench::InvariantReport invariants;

  double ms_after_kill(std::uint64_t time_ns) const {
    return time_ns < kill_ns ? 0 : static_cast<double>(time_ns - kill_ns) * 1e-6;
  }
  bool good() const { return audit_ok && lost_acknowledged == 0 && full_speed_ns != 0; }
};

class Demo {
 public:
  Demo(const DemoOptions& options, CrashRun& crash) : options_(options), crash_(crash) {}

  Status run(DemoFigures& figures) {
    Status status = crash_.start({.populate = true, .run = true});
    if (status.ok()) status = crash_.wait_until_running(bar_);
    if (!status.ok()) return status;
    announce();
    figures.begin_ns = bench::monotonic_ns();
    status = sample("before crash", options_.seconds_before, figures);
    if (!status.ok()) return status;

    figures.kill_ns = bench::monotonic_ns();
    crash_.kill();
    figures.gone_ns = bench::monotonic_ns();
    status = crash_.start({.run = true});
    if (status.ok()) status = sample("after crash", options_.seconds_after, figures);
    if (!status.ok()) return status;
    evaluate(figures);

    // The second life is killed as well; what both of them promised is audited in a third.
    crash_.kill();
    return audit(figures);
  }

 private:
  void announce() {
    const bench::CrashStatus& status = crash_.witness().status();
    fmt::print("{} subscribers, {} rows loaded in {:.2f} s; medium {}: {}\n", options_.subscribers,
               status.rows_loaded.load(), status.load_seconds.load(), status.medium,
               status.guarantee);
    fmt::print("TATP, full mix, {} users; SIGKILL after {:.1f} s\n\n", options_.users,
               options_.seconds_before);
    std::fflush(stdout);
  }

  Status sample(const char* what, double seconds, DemoFigures& figures) {
    const std::uint64_t begin = bench::monotonic_ns();
    const auto whole_ns = static_cast<std::uint64_t>(seconds * 1e9);
    auto next = std::chrono::steady_clock::now();
    for (std::uint64_t now = begin; now < begin + whole_ns; now = bench::monotonic_ns()) {
      figures.samples.push_back({bench::monotonic_ns(), crash_.witness().executed()});
      Status status = crash_.expect_alive();
      if (!status.ok()) return status;
      bar_.update(what, now - begin, whole_ns);
      next += kSampleInterval;
      std::this_thread::sleep_until(next);
    }
    figures.samples.push_back({bench::monotonic_ns(), crash_.witness().executed()});
    bar_.clear();
    return {};
  }

  void evaluate(DemoFigures& figures) const {
    const bench::CrashStatus& status = crash_.witness().status();
    figures.main_ns = status.main_ns.load();
    figures.opened_ns = status.opened_ns.load();
    figures.answer_ns = crash_.witness().first_answer_ns();
    figures.completed = status.recovery_completed.load();
    figures.undone = status.recovery_undone.load();
    // The first tenth is left out of the mean: page faults of a pool just made.
    const std::uint64_t steady_ns = figures.begin_ns + (figures.kill_ns - figures.begin_ns) / 10;
    figures.before_tps = throughput(figures.samples, steady_ns, figures.kill_ns);
    if (figures.answer_ns == 0) return;
    figures.after_tps =
        throughput(figures.samples, figures.answer_ns, figures.samples.back().time_ns);
    figures.full_speed_ns =
        time_of_throughput(figures.samples, figures.answer_ns, kFullSpeedShare * figures.before_tps,
                           kFullSpeedWindowNs);
  }

  Status audit(DemoFigures& figures) {
    Status status = crash_.start({.check = true, .verify = true});
    int exit_status = kExitCouldNotRun;
    if (status.ok()) status = crash_.wait_until_done(bar_, exit_status);
    if (!status.ok()) return status;
    if (exit_status == kExitCouldNotRun)
      return Status(StatusCode::kCorrupt, "the database could not be audited, see above");
    figures.audit_ok = exit_status == kExitOk;
    figures.audited = crash_.witness().status().audited_entries.load();
    figures.lost_acknowledged = crash_.witness().status().lost_acknowledged.load();
    figures.invariants = crash_.invariants();
    return {};
  }

  const DemoOptions& options_;
  CrashRun& crash_;
  ProgressBar bar_;
};

void print_curve(const DemoFigures& figures, std::uint64_t begin_ns, std::uint64_t end_ns) {
  std::vector<double> values;
  values.reserve(kCurveWidth);
  const std::uint64_t step = (end_ns - begin_ns) / kCurveWidth;
  for (std::size_t i = 0; i < kCurveWidth; ++i)
    values.push_back(throughput(figures.samples, begin_ns + i * step, begin_ns + (i + 1) * step));
  CurveText curve;
  curve.mark = static_cast<std::size_t>((figures.kill_ns - begin_ns) / step);
  const auto label = [&](std::uint64_t time_ns) {
    const double ms = (static_cast<double>(time_ns) - static_cast<double>(figures.kill_ns)) * 1e-6;
    return ms >= 2000 || ms <= -2000 ? fmt::format("{:+.0f} s", ms / 1000)
                                     : fmt::format("{:+.0f} ms", ms);
  };
  curve.begin_label = label(begin_ns);
  curve.mark_label = "SIGKILL";
  curve.end_label = label(end_ns);
  fmt::print("{}\n", curve.draw(values));
}

void print_figures(const DemoFigures& figures) {
  fmt::print("transactions per second through the crash\n");
  print_curve(figures, figures.begin_ns, figures.samples.back().time_ns);
  fmt::print("the same, around the crash\n");
  const std::uint64_t full_ns =
      figures.full_speed_ns == 0 ? figures.kill_ns : figures.full_speed_ns;
  const std::uint64_t after_ns =
      std::max<std::uint64_t>(400 * kMsInNs, 2 * (full_ns - figures.kill_ns));
  print_curve(figures, std::max(figures.begin_ns, figures.kill_ns - after_ns / 4),
              std::min(figures.kill_ns + after_ns, figures.samples.back().time_ns));

  TextTable table({"after SIGKILL", "ms"});
  const auto add = [&](const char* what, std::uint64_t time_ns) {
    table.add(
        {what, time_ns == 0 ? "never" : fmt::format("{:.1f}", figures.ms_after_kill(time_ns))});
  };
  add("the killed process is gone", figures.gone_ns);
  add("the next one has started", figures.main_ns);
  add("the database is open, recovered", figures.opened_ns);
  add("first answer", figures.answer_ns);
  add("full speed (95 % of the mean before, over 20 ms)", figures.full_speed_ns);
  fmt::print("{}\n", table.to_string());
  fmt::print("before {} transactions/s, after {}\n", format_count(figures.before_tps),
             format_count(figures.after_tps));
  fmt::print("in flight at the kill: {} completed, {} undone by the restart\n", figures.completed,
             figures.undone);
  fmt::print("audit after a second kill: {} write transactions, {} acknowledged ones lost; {}\n",
             figures.audited, figures.lost_acknowledged, describe_invariants(figures.invariants));
  fmt::print("{}\n", figures.good() ? "Every check held." : "A CHECK FAILED.");
}

bench::Json figures_json(const DemoOptions& options, CrashRun& crash, const DemoFigures& figures) {
  const bench::Environment environment = bench::environment();
  const bench::CrashStatus& status = crash.witness().status();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = status.medium;
  json["guarantee"] = status.guarantee;
  json["subscribers"] = options.subscribers;
  json["users"] = options.users;
  json["index"] = to_string(options.index_mode);
  json["lost_acknowledged"] = figures.lost_acknowledged;
  json["audit_ok"] = figures.audit_ok;
  json["audited_transactions"] = figures.audited;
  json["first_answer_ms"] = nullptr;
  json["full_speed_ms"] = nullptr;
  if (figures.answer_ns != 0) json["first_answer_ms"] = figures.ms_after_kill(figures.answer_ns);
  if (figures.full_speed_ns != 0)
    json["full_speed_ms"] = figures.ms_after_kill(figures.full_speed_ns);
  json["process_gone_ms"] = figures.ms_after_kill(figures.gone_ns);
  json["process_started_ms"] = figures.ms_after_kill(figures.main_ns);
  json["opened_ms"] = figures.ms_after_kill(figures.opened_ns);
  json["before_tps"] = figures.before_tps;
  json["after_tps"] = figures.after_tps;
  json["transactions_completed"] = figures.completed;
  json["transactions_undone"] = figures.undone;
  json["invariants"] = invariants_json(figures.invariants);
  json["pool_bytes"] = status.pool_bytes.load();
  bench::Json curve = bench::Json::array();
  for (std::size_t i = 1; i < figures.samples.size(); ++i) {
    const std::uint64_t time_ns = figures.samples[i].time_ns;
    curve.push_back(
        {{"ms", (static_cast<double>(time_ns) - static_cast<double>(figures.kill_ns)) * 1e-6},
         {"tps", throughput(figures.samples, figures.samples[i - 1].time_ns, time_ns)}});
  }
  json["curve"] = curve;
  json["machine"] = bench::to_json(environment);
  return json;
}

int run_command(const DemoOptions& options) {
  constexpr double kWritesPerSecondMax = 1e6;  // of one user
  bench::CrashPlan plan;
  plan.population.subscribers = options.subscribers;
  plan.population.seed = options.seed;
  plan.population.parity = true;
  plan.users = options.users;
  plan.load_threads = default_load_threads();
  plan.index_mode = options.index_mode;
  plan.scm_read_ns = options.latency.read_ns;
  plan.scm_write_ns = options.latency.write_ns;
  plan.log_entries = static_cast<std::uint64_t>(
      kWritesPerSecondMax * (options.seconds_before + options.seconds_after + 1));
  Result<CrashRun> crash = CrashRun::prepare(plan, options.pool, options.keep);
  if (!crash.ok()) return could_not_run(crash.status());
  if (!crash->pool().remark().empty()) fmt::print("{}\n", crash->pool().remark());
  DemoFigures figures;
  const Status status = Demo(options, *crash).run(figures);
  if (!status.ok()) {
    fmt::print(stderr, "flugs: {}\n", status.to_string());
    return kExitCheckFailed;
  }
  print_figures(figures);
  return finish_with_json(options.json, figures_json(options, *crash, figures),
                          figures.good() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<DemoOptions>();
  CLI::App* command = app.add_subcommand(
      "demo", "TATP killed in mid-run, opened again and audited: throughput through the crash");
  command->add_option("--pool", options->pool, "Pool to make; removed afterwards")
      ->type_name("PATH");
  command->add_option("--subscribers", options->subscribers, "Size of the population")
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax))
      ->capture_default_str();
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command->add_option("--seconds-before", options->seconds_before, "Run before the crash")
      ->check(real_range(0.1, 1e5))
      ->capture_default_str();
  command->add_option("--seconds-after", options->seconds_after, "Run after it, restart included")
      ->check(real_range(0.1, 1e5))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Of all random numbers")->capture_default_str();
  add_scm_latency_option(*command, options->latency);
  add_index_option(*command, options->index_mode);
  command->add_flag("--keep", options->keep, "Do not remove the pool");
  command->add_option("--json", options->json, "Write the results to this file")->type_name("FILE");
  command->callback([options, &action] {
    action = [options] {
      Cleanup::install();
      return run_command(*options);
    };
  });
}

}  // namespace flugs::tools
