#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tools/children/demo_run.h"
#include "tools/report/curve.h"
#include "tools/support/command.h"
#include "tools/support/tatp_options.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kMsInNs = 1'000'000;
constexpr std::size_t kCurveWidth = 72;

void print_curve(const DemoFigures& figures, std::uint64_t begin_ns, std::uint64_t end_ns) {
  std::vector<double> values;
  values.reserve(kCurveWidth);
  const std::uint64_t step = (end_ns - begin_ns) / kCurveWidth;
  for (std::size_t i = 0; i < kCurveWidth; ++i)
    values.push_back(throughput(figures.samples, begin_ns + i * step, begin_ns + (i + 1) * step));
  CurveText curve;
  curve.unit = "trans./s";
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

void print_figures(const DemoOptions& options, const DemoFigures& figures) {
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
  const auto add = [&](const std::string& what, std::uint64_t time_ns) {
    table.add(
        {what, time_ns == 0 ? "never" : fmt::format("{:.1f}", figures.ms_after_kill(time_ns))});
  };
  add("the killed process is gone", figures.gone_ns);
  add("the next one has started", figures.main_ns);
  add("the database is open, recovered", figures.opened_ns);
  add("first answer", figures.answer_ns);
  add(fmt::format("full speed ({:.0f} % of the mean before)", 100 * options.full_speed_share),
      figures.full_speed_ns);
  fmt::print("{}\n", table.to_string());
  fmt::print("before {} transactions/s, after {}\n", format_count(figures.before_tps),
             format_count(figures.after_tps));
  fmt::print("in flight at the kill: {} completed, {} undone by the restart\n", figures.completed,
             figures.undone);
  fmt::print("audit after a second kill: {} write transactions, {} acknowledged ones lost; {}\n",
             figures.audited, figures.lost_acknowledged, describe_invariants(figures.invariants));
  fmt::print("{}\n", figures.good() ? "Every check held." : "A CHECK FAILED.");
}

int run_command(const DemoOptions& options, const std::string& json) {
  Result<CrashRun> crash = prepare_demo(options);
  if (!crash.ok()) return could_not_run(crash.status());
  if (!crash->pool().remark().empty()) fmt::print("{}\n", crash->pool().remark());
  DemoFigures figures;
  const Status status = run_demo(options, *crash, figures);
  if (!status.ok()) {
    fmt::print(stderr, "flugs: {}\n", status.to_string());
    return kExitCheckFailed;
  }
  print_figures(options, figures);
  return finish_with_json(json, demo_json(options, *crash, figures),
                          figures.good() ? kExitOk : kExitCheckFailed);
}

}  // namespace

void add_demo(CLI::App& app, Action& action) {
  auto options = std::make_shared<DemoOptions>();
  auto json = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "demo", "Kills TATP in mid-run, opens its pool again, and audits all promises");
  add_new_pool_options(*command, options->pool, &options->keep);
  command->add_option("--subscribers", options->subscribers, "Size of the population")
      ->check(CLI::Range(1u, bench::TatpState::kSubscribersMax))
      ->capture_default_str();
  command->add_option("--users", options->users, "Concurrent users, a thread each")
      ->check(CLI::Range(1u, bench::kUsersMax))
      ->capture_default_str();
  command
      ->add_option("--seconds-before", options->seconds_before, "Seconds to run before the crash")
      ->check(real_range(0.1, 1e5))
      ->capture_default_str();
  command
      ->add_option("--seconds-after", options->seconds_after,
                   "Seconds to run after the crash, with the restart")
      ->check(real_range(0.1, 1e5))
      ->capture_default_str();
  command
      ->add_option("--full-speed-share", options->full_speed_share,
                   "Share of the mean throughput before the crash that counts as full speed")
      ->check(real_range(0.01, 1))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "Seed of all random numbers")->capture_default_str();
  add_scm_options(*command, options->scm);
  add_index_option(*command, options->index_place);
  add_json_option(*command, *json);
  run_when_chosen(*command, action, [options, json] { return run_command(*options, *json); });
}

}  // namespace flugs::tools
