#include "verify/crash/exploration/workload.h"

#include <fmt/format.h>

#include <ctime>
#include <optional>

#include "base/zeroed_memory.h"
#include "engine/database/database_access.h"
#include "mvcc/transaction_slots.h"
#include "pmem/space/extent_allocator.h"

namespace flugs::crash {

namespace {

constexpr std::uint64_t kSegmentBytes = std::uint64_t{16} << 10;

Status said(const char* when, const Status& status) {
  return Status(status.code(), fmt::format("{}: {}", when, status.message()));
}

/// The live database and the explorer that watches it.
class WorkloadRun {
 public:
  WorkloadRun(CrashWorkload& workload, const WorkloadLimits& limits)
      : workload_(workload), buffer_(limits.pool_bytes) {
    options_.segment_bytes = kSegmentBytes;
    options_.tuning.grow_ahead_bytes = 0;
    options_.slots_max = limits.slots;
    options_.tuning.recovery_threads = 1;
    options_.merge_policy.automatic = false;  // a replay must meet the same crash points
  }
  WorkloadRun(const WorkloadRun&) = delete;
  WorkloadRun& operator=(const WorkloadRun&) = delete;
  ~WorkloadRun() {
    if (database_) medium_of(*database_).set_observer(nullptr);
  }

  Status run(const ExplorerOptions& explorer_options) {
    if (Status s = create(); !s.ok()) return said("creating the database", s);
    if (Status s = workload_.set_up(*database_); !s.ok()) return said("set_up", s);
    explorer_.emplace(
        buffer_.span(),
        [this](std::span<std::byte> image, ExplorerContext& context) {
          if (context.depth() != 0) return check(image, context);
          const mvcc::OtherThread another(1);
          return check(image, context);
        },
        explorer_options);
    medium_of(*database_).set_observer(&*explorer_);
    explorer_->crash_now("set up");
    for (std::uint64_t step = 0; step < workload_.steps() && !explorer_->is_done(); ++step) {
      moment_.is_in_step = true;
      if (Status s = workload_.step(*database_, step); !s.ok())
        return said(fmt::format("step {}", step).c_str(), s);
      moment_ = {step + 1, false};
      explorer_->crash_now("acknowledged");
    }
    return {};
  }

  ExplorerReport report() const { return explorer_ ? explorer_->report() : ExplorerReport(); }

 private:
  static pmem::Medium& medium_of(Database& database) {
    return engine::DatabaseAccess::core(database).pool().medium();
  }

  Status create() {
    pmem::PoolOptions pool_options;
    pool_options.segment_bytes = kSegmentBytes;
    pool_options.extent_unit_bytes = 256;
    auto pool = pmem::Pool::create_in_memory(buffer_.span(), pool_options);
    if (!pool.ok()) return std::move(pool).status();
    auto core = engine::DatabaseCore::open(std::move(*pool), true, options_);
    if (!core.ok()) return std::move(core).status();
    database_ = engine::DatabaseAccess::wrap(std::move(*core));
    return {};
  }

  Result<Database> open(std::span<std::byte> image, pmem::PersistObserver* observer) const {
    pmem::PoolOptions pool_options;
    pool_options.observer = observer;
    auto pool = pmem::Pool::open_in_memory(image, pool_options);
    if (!pool.ok()) return std::move(pool).status();
    auto core = engine::DatabaseCore::open(std::move(*pool), false, options_);
    if (!core.ok()) return std::move(core).status();
    return engine::DatabaseAccess::wrap(std::move(*core));
  }

  Status audit(Database& database) const {
    if (Status s = database.check(); !s.ok()) return s;
    return check_space(engine::DatabaseAccess::core(database));
  }

  Status check(std::span<std::byte> image, ExplorerContext& context) {
    std::uint64_t used = 0;
    {
      Result<Database> recovered = open(image, context.observer());
      if (!recovered.ok()) return said("opening", recovered.status());
      context.crash_now("recovered");
      medium_of(*recovered).set_observer(nullptr);
      if (Status s = audit(*recovered); !s.ok()) return said("recovered", s);
      if (Status s = workload_.check(*recovered, moment_); !s.ok()) return said("check", s);
      if (Status s = audit(*recovered); !s.ok()) return said("audit after the check", s);
      used = recovered->statistics().pool_used_bytes;
    }
    Result<Database> again = open(image, nullptr);
    if (!again.ok()) return said("opening again", again.status());
    if (Status s = audit(*again); !s.ok()) return said("second restart", s);
    if (const std::uint64_t then = again->statistics().pool_used_bytes; then != used)
      return Status(
          StatusCode::kCorrupt,
          fmt::format("{} bytes in use before a clean restart, {} behind it", used, then));
    return {};
  }

  CrashWorkload& workload_;
  OpenOptions options_;
  PoolBuffer buffer_;
  std::optional<CrashExplorer> explorer_;
  std::optional<Database> database_;
  CrashMoment moment_;
};

}  // namespace

ExplorationResult explore_workload(const Exploration& exploration, const WorkloadFactory& make,
                                   const WorkloadLimits& limits) {
  const std::clock_t start = std::clock();
  keep_zeroed_memory(64);
  ExplorationResult result;
  const Result<ExplorerOptions> options = explorer_options(exploration);
  const std::unique_ptr<CrashWorkload> workload = make(exploration.seed + exploration.round);
  if (!options.ok()) {
    result.outcome = options.status();
  } else if (workload == nullptr) {
    result.outcome = Status(StatusCode::kInvalidArgument, "the plug-in made no workload");
  } else {
    WorkloadRun run(*workload, limits);
    result.outcome = run.run(*options);
    result.report = run.report();
  }
  if (!result.report.failures.empty()) {
    result.outcome = Status(StatusCode::kCorrupt, result.report.to_string());
    result.replay = replay_words(exploration, result.report.failures[0]);
  }
  result.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  return result;
}

}  // namespace flugs::crash
