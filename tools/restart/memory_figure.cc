#include "tools/restart/memory_figure.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "bench/support/clock.h"
#include "tools/children/crash_run.h"
#include "tools/support/exit_status.h"
#include "tools/support/memory_group.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

namespace {

constexpr std::uint64_t kMemoryPart = 4;
constexpr auto kMemorySampleInterval = std::chrono::milliseconds(10);

/// What the files of a directory take from the file system.
std::uint64_t bytes_taken(const std::string& path) {
  constexpr std::uint64_t kBlockBytes = 512;  // of stat
  std::error_code error;
  std::uint64_t bytes = 0;
  struct stat info{};
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path, error))
    if (entry.is_regular_file(error) && ::stat(entry.path().c_str(), &info) == 0)
      bytes += static_cast<std::uint64_t>(info.st_blocks) * kBlockBytes;
  return bytes;
}

class MemoryMeasurement {
 public:
  MemoryMeasurement(const MemoryRunOptions& options, bool is_flugs, CrashRun& crash,
                    const MemoryGroup& group, ProgressBar& bar, MemoryRun& run)
      : options_(options),
        is_flugs_(is_flugs),
        crash_(crash),
        group_(group),
        bar_(bar),
        run_(run) {}

  Status load() {
    Status status = crash_.start({.populate = true});
    int exit_status = kExitCouldNotRun;
    if (status.ok()) status = crash_.wait_until_done(bar_, exit_status);
    if (!status.ok()) return status;
    if (exit_status != kExitOk)
      return Status(StatusCode::kIoError, "the database could not be loaded, see above");
    // A pool keeps space ready for writers, which no row uses.
    run_.database_bytes =
        is_flugs_ ? crash_.witness().status().pool_bytes.load() : bytes_taken(crash_.pool().path());
    run_.memory_bytes =
        options_.memory_bytes != 0 ? options_.memory_bytes : run_.database_bytes / kMemoryPart;
    return group_.limit(run_.memory_bytes);
  }

  Status read() {
    Status status = crash_.start({.run = true});
    if (status.ok()) status = crash_.wait_until_running(bar_);
    if (status.ok()) status = wait("warming up");
    if (!status.ok()) return status;
    const std::uint64_t begin_ns = bench::monotonic_ns();
    const std::uint64_t executed = crash_.witness().executed();
    const std::uint64_t faults = group_.major_faults();
    status = wait("reading");
    if (!status.ok()) return status;
    const auto reads = static_cast<double>(crash_.witness().executed() - executed);
    run_.reads_per_second = reads / (static_cast<double>(bench::monotonic_ns() - begin_ns) * 1e-9);
    if (reads != 0)
      run_.faults_per_read = static_cast<double>(group_.major_faults() - faults) / reads;
    crash_.kill();
    return {};
  }

 private:
  Status wait(const char* what) {
    const std::uint64_t begin = bench::monotonic_ns();
    const auto whole_ns = static_cast<std::uint64_t>(options_.seconds * 1e9);
    for (std::uint64_t now = begin; now < begin + whole_ns; now = bench::monotonic_ns()) {
      if (Status s = crash_.expect_alive(); !s.ok()) return s;
      bar_.update(what, now - begin, whole_ns);
      std::this_thread::sleep_for(kMemorySampleInterval);
    }
    bar_.clear();
    return {};
  }

  const MemoryRunOptions& options_;
  const bool is_flugs_;
  CrashRun& crash_;
  const MemoryGroup& group_;
  ProgressBar& bar_;
  MemoryRun& run_;
};

}  // namespace

Status measure_in_memory(const MemoryRunOptions& options, const RestartEngine& engine,
                         ProgressBar& bar, MemoryRun& run) {
  const Result<MemoryGroup> group = MemoryGroup::make();
  if (!group.ok()) return group.status();
  bench::CrashPlan plan;
  plan.population.subscribers = options.subscribers;
  plan.population.seed = options.seed;
  plan.users = options.users;
  plan.load_threads = default_load_threads();
  plan.index_place = engine.index_place;
  plan.mix = bench::TatpMix::kRead;
  plan.distribution = options.distribution;
  plan.log_entries = 1;  // no transaction writes
  plan.is_merged = true;
  if (group->path().size() >= sizeof plan.memory_group)
    return Status(StatusCode::kIoError, group->path() + ": the path is too long");
  group->path().copy(plan.memory_group, sizeof plan.memory_group - 1);
  Result<CrashRun> crash = CrashRun::prepare(plan, options.path, false, engine.program);
  if (!crash.ok()) return std::move(crash).status();
  MemoryMeasurement measurement(options, engine.is_flugs(), *crash, *group, bar, run);
  Status status = measurement.load();
  const bench::CrashStatus& found = crash->witness().status();
  run.load_seconds = found.load_seconds.load();
  if (status.ok()) status = measurement.read();
  run.key = engine.key;
  run.name = engine.is_flugs() ? fmt::format("flugs {}, main", FLUGS_VERSION) : found.engine;
  run.setup = found.setup;
  run.medium = found.medium;
  return status;
}

bench::Json to_json(const MemoryRun& run) {
  return {{"key", run.key},
          {"name", run.name},
          {"setup", run.setup},
          {"medium", run.medium},
          {"database_bytes", run.database_bytes},
          {"memory_bytes", run.memory_bytes},
          {"load_seconds", run.load_seconds},
          {"reads_per_second", run.reads_per_second},
          {"major_faults_per_read", run.faults_per_read}};
}

}  // namespace flugs::tools
