#include "tools/children/crash_run.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tools/support/exit_status.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

constexpr auto kPollInterval = std::chrono::milliseconds(1);

const char* name_of(bench::Stage stage) {
  switch (stage) {
    case bench::Stage::kStarting:
      return "starting";
    case bench::Stage::kPopulating:
      return "loading";
    case bench::Stage::kOpening:
      return "opening";
    case bench::Stage::kChecking:
      return "checking";
    case bench::Stage::kRunning:
      return "running";
    case bench::Stage::kDone:
      return "done";
  }
  return "";
}

}  // namespace

Result<CrashRun> CrashRun::prepare(bench::CrashPlan plan, const std::string& pool_path, bool keep,
                                   const std::string& program) {
  // The logs take what is written of them; a quarter is far beyond what a machine can do.
  const std::uint64_t log_bytes = plan.log_entries * sizeof(bench::WitnessEntry) * plan.users / 4;
  const std::uint64_t base_bytes =
      2 * sizeof(bench::TatpState) * std::uint64_t{plan.population.subscribers};
  const std::uint64_t witness_bytes = log_bytes + base_bytes + (std::uint64_t{16} << 20);
  Result<PoolFile> pool = PoolFile::choose(
      pool_path, keep, tatp_pool_bytes(plan.population.subscribers) + witness_bytes);
  if (!pool.ok()) return std::move(pool).status();
  if (pool->existed())
    return Status(StatusCode::kAlreadyExists,
                  pool->path() +
                      " exists: name a path that does not exist, because the run makes a new pool "
                      "and crashes it");
  if (pool->path().size() >= sizeof plan.pool_path)
    return Status(StatusCode::kInvalidArgument, "the pool's path is too long");
  pool->path().copy(plan.pool_path, sizeof plan.pool_path - 1);
  std::error_code error;
  if (!program.empty() && !std::filesystem::create_directory(pool->path(), error))
    return Status(StatusCode::kIoError, pool->path() + ": " + error.message());
  CrashRun run;
  run.program_ = program;
  run.pool_ = std::move(pool).value();
  run.witness_file_ = TemporaryFile(fresh_shared_path(".witness", witness_bytes));
  Result<bench::Witness> witness = bench::Witness::create(run.witness_file_.path(), plan);
  if (!witness.ok()) return std::move(witness).status();
  run.witness_ = std::move(witness).value();
  return run;
}

Status CrashRun::start(const CrashTask& task) {
  witness_.status().stage.store(bench::Stage::kStarting);
  std::vector<std::string> arguments = {"crash-child", witness_file_.path()};
  if (task.populate) arguments.push_back("--populate");
  if (task.check) arguments.push_back("--check");
  if (task.verify) arguments.push_back("--verify");
  if (task.run) arguments.push_back("--run");
  Result<ChildProcess> child = program_.empty()
                                   ? ChildProcess::start(std::move(arguments))
                                   : ChildProcess::start(std::move(arguments), program_);
  if (!child.ok()) return std::move(child).status();
  child_ = std::move(child).value();
  return {};
}

void CrashRun::draw(ProgressBar& bar) const {
  const bench::CrashStatus& status = witness_.status();
  bar.update(name_of(status.stage.load()), status.progress_done.load(),
             status.progress_total.load());
}

Status CrashRun::expect_alive() {
  if (!child_.has_ended()) return {};
  const bool could_not_run = child_.exit_status() == kExitCouldNotRun;
  return Status(could_not_run ? StatusCode::kIoError : StatusCode::kCorrupt,
                fmt::format("the process that {} the database {}",
                            witness_.status().stage.load() == bench::Stage::kRunning ? "worked with"
                                                                                     : "opened",
                            child_.describe_end()));
}

Status CrashRun::wait_until_running(ProgressBar& bar) {
  while (witness_.status().stage.load() != bench::Stage::kRunning) {
    Status status = expect_alive();
    if (!status.ok()) return status;
    draw(bar);
    std::this_thread::sleep_for(kPollInterval);
  }
  bar.clear();
  return {};
}

Status CrashRun::wait_until_done(ProgressBar& bar, int& exit_status) {
  while (!child_.has_ended()) {
    draw(bar);
    std::this_thread::sleep_for(kPollInterval);
  }
  bar.clear();
  exit_status = child_.exit_status();
  if (exit_status >= 0) return {};
  return Status(StatusCode::kCorrupt,
                "the process that opened the database " + child_.describe_end());
}

bench::InvariantReport CrashRun::invariants() const {
  bench::InvariantReport report;
  for (std::size_t i = 0; i < bench::kInvariants; ++i) {
    const auto state = static_cast<bench::Check>(witness_.status().invariants[i].load());
    const auto invariant = static_cast<bench::Invariant>(i);
    if (state == bench::Check::kHeld) report.check(invariant);
    if (state == bench::Check::kBroken) report.broken(invariant, "see above");
  }
  return report;
}

}  // namespace flugs::tools
