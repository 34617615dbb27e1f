// Opening a database: what is asked for, the pool, the phases in their order.

#include <fmt/format.h>

#include "base/check.h"
#include "base/elapsed.h"
#include "base/long_call.h"
#include "engine/database/database_core.h"
#include "engine/database/opening.h"
#include "tables/catalog/key_kinds.h"

namespace flugs::engine {

namespace {

constexpr std::uint64_t kJournalBytesMax = std::uint64_t{1} << 40;
constexpr std::chrono::microseconds kRestartBudgetMax = std::chrono::hours(24);

// The messages below name these numbers.
static_assert(static_cast<unsigned>(OpenMode::kReadOnly) == 3);
static_assert(static_cast<unsigned>(Ready::kIndexesBuilt) == 1);
static_assert(static_cast<unsigned>(CommitClock::kAutomatic) == 2);

Status check_place(const OpenOptions& options) {
  if (options.mode > OpenMode::kReadOnly)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("OpenOptions::mode is {}, allowed are 0 to 3",
                              static_cast<unsigned>(options.mode)));
  if (options.in_memory && !options.path.empty())
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format(
            "OpenOptions::in_memory is set, and path is '{}': a database in memory has none",
            options.path));
  if (options.in_memory && (options.mode == OpenMode::kOpen || options.mode == OpenMode::kReadOnly))
    return Status(
        StatusCode::kInvalidArgument,
        "OpenOptions::in_memory is set: a database in memory is always new, use mode kCreate or "
        "kOpenOrCreate");
  if (!options.in_memory && options.path.empty())
    return Status(StatusCode::kInvalidArgument,
                  "OpenOptions::path is empty: name the file of the pool, or set in_memory");
  return {};
}

Status check_options(const OpenOptions& options) {
  if (options.tuning.recovery_threads > Crew::kWorkersMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::recovery_threads is {}, allowed are 0 to {}",
                              options.tuning.recovery_threads, Crew::kWorkersMax));
  if (options.slots_max < 1 || options.slots_max > mvcc::kSlotsMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("OpenOptions::slots_max is {}, allowed are 1 to {}",
                              options.slots_max, mvcc::kSlotsMax));
  constexpr std::uint32_t kNicenessMax = 19;
  if (options.tuning.merge_niceness > kNicenessMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::merge_niceness is {}, allowed are 0 to {}",
                              options.tuning.merge_niceness, kNicenessMax));
  constexpr std::chrono::milliseconds kHintIntervalMax = std::chrono::hours(24);
  if (options.tuning.hint_interval.count() < 0 || options.tuning.hint_interval > kHintIntervalMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::hint_interval is {} ms, allowed are 0 to {}",
                              options.tuning.hint_interval.count(), kHintIntervalMax.count()));
  if (static_cast<std::uint64_t>(options.index_place) > kLastIndexPlace)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("OpenOptions::index_place is {}, allowed are 0 to {}",
                              static_cast<unsigned>(options.index_place), kLastIndexPlace));
  if (options.ready != Ready::kFirstAnswer && options.ready != Ready::kIndexesBuilt)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("OpenOptions::ready is {}, allowed are 0 and 1",
                              static_cast<unsigned>(options.ready)));
  if (options.tuning.journal_bytes > kJournalBytesMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::journal_bytes is {}, allowed are 0 to {}",
                              options.tuning.journal_bytes, kJournalBytesMax));
  if (options.tuning.restart_budget.count() < 0 ||
      options.tuning.restart_budget > kRestartBudgetMax)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::restart_budget is {} us, allowed are 0 to {}",
                              options.tuning.restart_budget.count(), kRestartBudgetMax.count()));
  if (options.tuning.direct_write_bytes != 0 &&
      options.tuning.direct_write_bytes < pmem::kDirectBytesMin)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::direct_write_bytes is {}, allowed are 0 and {} or more",
                              options.tuning.direct_write_bytes, pmem::kDirectBytesMin));
  if (options.tuning.clock > CommitClock::kAutomatic)
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("Tuning::clock is {}, allowed are 0 to 2",
                              static_cast<unsigned>(options.tuning.clock)));
  if (options.tuning.scm_read_ns != 0 && !pmem::kSeesScmReads)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("Tuning::scm_read_ns is {}, but this build of flugs cannot charge reads: use "
                    "one with FLUGS_SCM (cmake --preset scm, build/scm/tools/flugs)",
                    options.tuning.scm_read_ns));
  if (options.tuning.scm_lines_in_flight == 0)
    return Status(StatusCode::kInvalidArgument,
                  "Tuning::scm_lines_in_flight is 0, it must be 1 or more");
  if (options.tuning.clock == CommitClock::kProcessors)
    if (Status s = mvcc::Clock::check_processors(); !s.ok()) return s;
  return MergeRecord::check(options.merge_policy);
}

pmem::PoolOptions pool_options(const OpenOptions& options) {
  pmem::PoolOptions pool;
  pool.path = options.path;
  pool.max_bytes = options.max_bytes;
  pool.segment_bytes = options.segment_bytes;
  pool.grow_ahead_bytes = options.tuning.grow_ahead_bytes;
  pool.journal_bytes = options.tuning.journal_bytes;
  pool.direct_write_bytes = options.tuning.direct_write_bytes;
  pool.has_crash_ring = options.crash_ring;
  pool.accepts_lost_lines = options.accept_lost_lines;
  pool.replay_ns =
      static_cast<std::uint64_t>(std::chrono::nanoseconds(options.tuning.restart_budget).count());
  pool.latency = {.read_ns = options.tuning.scm_read_ns,
                  .write_ns = options.tuning.scm_write_ns,
                  .lines_in_flight = options.tuning.scm_lines_in_flight,
                  .keeps_lines = options.tuning.scm_cache == ScmCache::kProcessor};
  return pool;
}

// A read-only database does no work that only writers need.
OpenOptions as_opened(OpenOptions options) {
  if (options.mode != OpenMode::kReadOnly) return options;
  options.tuning.grow_ahead_bytes = 0;
  options.tuning.hint_interval = std::chrono::milliseconds(0);
  options.merge_policy = {};
  options.merge_policy.automatic = false;
  return options;
}

// Says more if the opening failed with this code.
Result<std::unique_ptr<pmem::Pool>> with_hint(Result<std::unique_ptr<pmem::Pool>> pool,
                                              StatusCode code, const char* hint) {
  if (pool.code() != code) return pool;
  return Status(code, std::string(pool.status().message()) + hint);
}

Result<std::unique_ptr<pmem::Pool>> open_pool(const OpenOptions& options, bool& created) {
  const pmem::PoolOptions wanted = pool_options(options);
  created = options.in_memory || options.mode == OpenMode::kCreate;
  if (options.in_memory) return pmem::Pool::create_in_own_memory(wanted);
  if (options.mode == OpenMode::kReadOnly) return pmem::Pool::open_to_read(wanted);
  if (options.mode == OpenMode::kCreate)
    return with_hint(pmem::Pool::create(wanted), StatusCode::kAlreadyExists,
                     "; OpenMode::kOpenOrCreate opens a pool that is there");
  Result<std::unique_ptr<pmem::Pool>> pool = pmem::Pool::open(wanted);
  if (options.mode == OpenMode::kOpen)
    return with_hint(std::move(pool), StatusCode::kNotFound,
                     "; OpenMode::kOpenOrCreate makes the pool");
  if (options.mode == OpenMode::kOpenOrCreate && pool.code() == StatusCode::kNotFound) {
    pool = pmem::Pool::create(wanted);
    created = pool.ok();
    if (pool.code() == StatusCode::kAlreadyExists) pool = pmem::Pool::open(wanted);  // made since
  }
  return pool;
}

}  // namespace

Result<std::unique_ptr<DatabaseCore>> DatabaseCore::open(const OpenOptions& given) {
  const OpenOptions options = as_opened(given);
  if (Status s = check_place(options); !s.ok()) return s;
  if (Status s = check_options(options); !s.ok()) return s;
  if (options.stop.stop_requested()) return stopped_by_caller("opening " + options.path);
  const auto start = std::chrono::steady_clock::now();
  // Before there are threads: then the kernel need not wait for every processor.
  mvcc::has_membarrier();
  bool created = false;
  Result<std::unique_ptr<pmem::Pool>> pool = open_pool(options, created);
  if (!pool.ok()) return std::move(pool).status();
  const double mapped_us = microseconds_since(start);
  Result<std::unique_ptr<DatabaseCore>> core = open(std::move(*pool), created, options);
  if (core.ok()) {
    RecoveryReport& report = (*core)->report_;
    report.phases.insert(report.phases.begin(), {"map", mapped_us, 1});
    report.total_us += mapped_us;
  }
  return core;
}

Result<std::unique_ptr<DatabaseCore>> DatabaseCore::open(std::unique_ptr<pmem::Pool> pool,
                                                         bool created, const OpenOptions& options,
                                                         OpeningBudget budget) {
  FLUGS_CHECK(pool != nullptr);
  if (Status s = check_options(options); !s.ok()) return s;
  std::unique_ptr<DatabaseCore> core(new DatabaseCore(std::move(pool), options));
  core->report_.created = created;
  // A pool that this call has made is not left half made.
  recovery::Phases phases(
      core->report_, options.tuning.recovery_threads,
      {.progress = options.progress, .stop = created ? std::stop_token() : options.stop});
  if (Status s = check_root(*core->pool_); !s.ok()) return s;
  // Without the magic a crash interrupted the creation: nothing in the pool is reachable yet.
  const bool is_new = core->root().magic == 0;
  if (is_new && !created) core->pool_->allocator().finish_claims();
  Opening opening(*core->pool_, core->options_, core->transactions_, core->catalog_, phases,
                  core->report_, budget);
  Status s = is_new ? opening.create() : opening.recover();
  if (!s.ok()) return s;
  if (s = phases.run("threads", [&] { return core->start_threads(); }); !s.ok()) return s;
  if (s = core->at_fork_.enter(&DatabaseCore::give_up_in_child, core.get()); !s.ok()) return s;
  phases.finish();
  return core;
}

Result<std::uint64_t> DatabaseCore::start_threads() {
  const std::uint64_t count =
      threads_.start(catalog_, transactions_, catalog_.ddl_mutex(), index_place(), catalog_.all());
  transactions_.connect(threads_.merger());
  return count;
}

}  // namespace flugs::engine
