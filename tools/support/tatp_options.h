#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/support/json.h"
#include "bench/support/scm_model.h"
#include "bench/tatp/tatp_driver.h"
#include "bench/tatp/tatp_invariants.h"
#include "bench/tatp/tatp_request.h"
#include "flugs/database.h"

namespace flugs::tools {

/// Merging during a run of TATP, see docs/benchmarks.md.
struct TatpMerge {
  enum class Mode : std::uint8_t {
    kDefault,  ///< as MergePolicy() says
    kAuto,     ///< full chunks, as the options below say
    kOff,
  };
  Mode mode = Mode::kDefault;
  bool first = false;  ///< everything, before the run
  std::uint32_t interval_ms = 1000;
  std::uint32_t written_percent = 100;
  std::uint32_t niceness = 0;
};
std::string name_of(TatpMerge::Mode mode);
/// --merge and what belongs to it: merges during the run.
void add_background_merge_options(CLI::App& command, TatpMerge& merge);
/// These, and --merge-first.
void add_merge_options(CLI::App& command, TatpMerge& merge);
/// As a run has it.
MergePolicy policy_of(const TatpMerge& merge);
Status merge_everything(Database& database);

// Options that several commands have in common.
void add_mix_option(CLI::App& command, bench::TatpMix& mix);
void add_distribution_option(CLI::App& command, bench::TatpDistribution& distribution);
/// --scm-latency READ_NS:WRITE_NS, --scm-cache, --scm-in-flight (docs/benchmarks.md, section 5).
void add_scm_options(CLI::App& command, bench::ScmModel& scm);
bench::Json scm_json(const bench::ScmModel& scm);
/// For each transaction executed: lines charged with the whole latency, and with a part of it.
bench::Json scm_lines_json(const bench::TatpRunResult& run);

std::string to_string(bench::TatpMix mix);
std::string to_string(bench::TatpDistribution distribution);

/// {"T1": true, ..., "T8": "not checked"}.
bench::Json invariants_json(const bench::InvariantReport& report);
/// "T1 T2 T3 held; T6 broken; T8 not checked".
std::string describe_invariants(const bench::InvariantReport& report);

/// Bytes that a pool for `subscribers` will take at most, roughly.
std::uint64_t tatp_pool_bytes(std::uint32_t subscribers);

/// --index dram|pool, for commands that make a pool.
void add_index_option(CLI::App& command, IndexPlace& mode);
/// --ready first-answer|indexes-built, of commands that open a pool.
void add_ready_option(CLI::App& command, std::string& ready);
/// --isolation snapshot|serializable|read-committed, of transactions.
void add_isolation_option(CLI::App& command, Isolation& isolation);
std::string_view to_string(Isolation isolation) noexcept;
/// --seconds, --ramp-up.
void add_period_options(CLI::App& command, double& seconds, double& ramp_up_seconds);
/// --restart-budget MS, --journal MB: Tuning::restart_budget and journal_bytes.
void add_journal_options(CLI::App& command, std::uint32_t& restart_budget_ms,
                         std::uint32_t& journal_mb);
/// --durable-within MS: Durability::kSoon.
void add_durability_option(CLI::App& command, CommitOptions& commit);
/// --process-crash-only: Durability::kProcessCrash.
CLI::Option* add_process_crash_option(CLI::App& command, CommitOptions& commit);
/// --clock counter|processors, where time-stamps come from.
void add_clock_option(CLI::App& command, CommitClock& clock);
std::string_view to_string(CommitClock clock) noexcept;
std::string_view to_string(IndexPlace mode) noexcept;

/// How the runners open a pool for `users` users.
OpenOptions tatp_open_options(const std::string& path, OpenMode mode, std::uint32_t users,
                              const bench::ScmModel& scm);

/// One loader thread for each processor.
std::uint32_t default_load_threads();

}  // namespace flugs::tools
