#include "tools/children/demo_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "bench/support/clock.h"
#include "bench/support/environment.h"
#include "tools/support/exit_status.h"
#include "tools/support/progress_bar.h"

namespace flugs::tools {

namespace {

constexpr auto kSampleInterval = std::chrono::milliseconds(10);
/// The window in which full speed is measured is at least two samples long, and at least as long as
/// kFullSpeedTransactions took before the crash: fewer would be there by chance.
constexpr double kFullSpeedWindowNs = 20e6;
constexpr double kFullSpeedTransactions = 100;

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
    if (!options_.program.empty()) fmt::print("{}: {}\n", status.engine, status.setup);
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
    if (figures.answer_ns == 0 || figures.before_tps == 0) return;
    figures.after_tps =
        throughput(figures.samples, figures.answer_ns, figures.samples.back().time_ns);
    figures.full_speed_window_ns = static_cast<std::uint64_t>(
        std::max(kFullSpeedWindowNs, kFullSpeedTransactions / figures.before_tps * 1e9));
    figures.full_speed_ns = time_of_throughput(figures.samples, figures.answer_ns,
                                               options_.full_speed_share * figures.before_tps,
                                               figures.full_speed_window_ns);
  }

  Status audit(DemoFigures& figures) {
    Status status = crash_.start({.check = true, .verify = options_.program.empty()});
    int exit_status = kExitCouldNotRun;
    if (status.ok()) status = crash_.wait_until_done(bar_, exit_status);
    if (!status.ok()) return status;
    if (exit_status == kExitCouldNotRun)
      return Status(StatusCode::kIoError, "the database could not be audited, see above");
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

}  // namespace

Result<CrashRun> prepare_demo(const DemoOptions& options) {
  constexpr double kWritesPerSecondMax = 1e6;  // of one user
  bench::CrashPlan plan;
  plan.population.subscribers = options.subscribers;
  plan.population.seed = options.seed;
  plan.population.parity = true;
  plan.users = options.users;
  plan.load_threads = default_load_threads();
  plan.index_place = options.index_place;
  plan.scm = options.scm;
  plan.log_entries = static_cast<std::uint64_t>(
      kWritesPerSecondMax * (options.seconds_before + options.seconds_after + 1));
  return CrashRun::prepare(plan, options.pool, options.keep, options.program);
}

Status run_demo(const DemoOptions& options, CrashRun& crash, DemoFigures& figures) {
  return Demo(options, crash).run(figures);
}

bench::Json demo_json(const DemoOptions& options, CrashRun& crash, const DemoFigures& figures) {
  const bench::Environment environment = bench::environment();
  const bench::CrashStatus& status = crash.witness().status();
  bench::Json json;
  json["commit"] = environment.commit;
  json["medium"] = status.medium;
  json["guarantee"] = status.guarantee;
  json["subscribers"] = options.subscribers;
  json["users"] = options.users;
  json["seed"] = options.seed;
  json["seconds_before"] = options.seconds_before;
  json["seconds_after"] = options.seconds_after;
  json["full_speed_share"] = options.full_speed_share;
  if (options.program.empty()) {
    json["index"] = to_string(options.index_place);
  } else {
    json["setup"] = status.setup;
  }
  json["lost_acknowledged"] = figures.lost_acknowledged;
  json["audit_ok"] = figures.audit_ok;
  json["audited_transactions"] = figures.audited;
  json["first_answer_ms"] = nullptr;
  json["full_speed_ms"] = nullptr;
  if (figures.answer_ns != 0) json["first_answer_ms"] = figures.ms_after_kill(figures.answer_ns);
  if (figures.full_speed_ns != 0)
    json["full_speed_ms"] = figures.ms_after_kill(figures.full_speed_ns);
  json["full_speed_window_ms"] = static_cast<double>(figures.full_speed_window_ns) * 1e-6;
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

}  // namespace flugs::tools
