#include "tools/restart/restart_run.h"

#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "tools/support/command.h"
#include "tools/support/pool_file.h"

namespace flugs::tools {

namespace {

RestartRun run_of(const bench::RestartTimes& times) {
  const auto ms = [&](std::uint64_t time_ns) {
    return static_cast<double>(time_ns - times.spawned_ns) * 1e-6;
  };
  RestartRun run;
  run.times = times;
  run.exec_to_main = ms(times.main_ns);
  run.open = ms(times.opened_ns) - run.exec_to_main;
  run.query = ms(times.first_answer_ns) - ms(times.opened_ns);
  run.all_indexes = ms(times.opened_ns) + times.later_ms;
  run.first_answer = ms(times.first_answer_ns);
  run.full_speed = times.full_speed_ns == 0 ? -1 : ms(times.full_speed_ns);
  for (std::size_t i = 0; i < times.phase_count; ++i) {
    const std::string_view name = times.phases[i].name;
    if (name == "dictionary indexes" || name == "key indexes")
      run.index_rebuild += times.phases[i].us * 1e-3;
  }
  run.rest = run.first_answer - run.index_rebuild;
  return run;
}

}  // namespace

bench::Json to_json(const Spread& spread) {
  return {{"median", spread.median}, {"p90", spread.p90}, {"max", spread.max}};
}

Result<RestartLives> RestartLives::prepare(const std::string& program,
                                           const bench::RestartPlan& plan) {
  RestartLives lives;
  lives.program_ = program;
  lives.random_ = bench::Random(plan.seed);
  lives.control_file_ = TemporaryFile(fresh_shared_path(".restart", kRestartControlBytes));
  Result<bench::RestartControl> control =
      bench::RestartControl::create(lives.control_file_.path(), plan);
  if (!control.ok()) return std::move(control).status();
  lives.control_ = *std::move(control);
  return lives;
}

Status RestartLives::load(ProgressBar& bar) { return live(true, plan().killed, bar); }

Result<RestartRun> RestartLives::restart(bool last, ProgressBar& bar) {
  Status status = live(false, plan().killed && !last, bar);
  if (!status.ok()) return status;
  return run_of(control_.status().times);
}

Status RestartLives::live(bool load, bool under_load, ProgressBar& bar) {
  status().stage.store(bench::RestartStage::kStarting);
  std::vector<std::string> arguments = {"restart-child", control_file_.path()};
  if (load) arguments.push_back("--load");
  if (under_load) arguments.push_back("--under-load");
  Result<ChildProcess> child = program_.empty()
                                   ? ChildProcess::start(std::move(arguments))
                                   : ChildProcess::start(std::move(arguments), program_);
  if (!child.ok()) return std::move(child).status();
  child_ = *std::move(child);
  return end_life(under_load, bar);
}

/// Until the process has closed the database, or until it was killed under load.
Status RestartLives::end_life(bool kill, ProgressBar& bar) {
  const auto poll = std::chrono::milliseconds(1);
  while (!(kill && status().stage.load() == bench::RestartStage::kUnderLoad)) {
    if (child_.has_ended())
      return !kill && child_.exit_status() == kExitOk ? Status() : unexpected_end();
    if (status().stage.load() == bench::RestartStage::kLoading)
      bar.update("loading", status().rows_loaded.load(), plan().rows, "rows");
    std::this_thread::sleep_for(poll);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(random_.between(100, 300)));
  if (child_.has_ended()) return unexpected_end();
  child_.kill();
  return {};
}

Status RestartLives::unexpected_end() const {
  const int exit_status = child_.exit_status();
  const bool wrong = exit_status == kExitCheckFailed || exit_status < 0;
  return Status(wrong ? StatusCode::kCorrupt : StatusCode::kIoError,
                "the process that had the database open " + child_.describe_end());
}

std::uint64_t restart_pool_bytes(const bench::RestartPlan& plan) {
  // A row is 32 to 40 bytes, a dictionary entry with its hint at most 48, and there is some space
  // ahead. A key takes 8 bytes in the row and at most 24 in its index; a merge has both.
  const std::uint64_t row_bytes =
      (plan.keyed ? 72u : 40u) + (plan.side == bench::RestartSide::kDelta ? 0u : 40u);
  const std::uint64_t table_bytes =
      row_bytes * plan.rows + bench::kRestartColumns * 48 * plan.distinct;
  // The first chunks of a small table have room for more.
  const std::uint64_t others_bytes = (plan.tables - 1) * (table_bytes + (std::uint64_t{256} << 10));
  return table_bytes + others_bytes + (std::uint64_t{768} << 20);
}

}  // namespace flugs::tools
