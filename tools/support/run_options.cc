#include "tools/support/run_options.h"
#include "tools/support/delta_layout.h"

#include <chrono>

#include "bench/support/environment.h"
#include "tools/support/command.h"

namespace flugs::tools {

namespace {

const char* durability_name(Durability durability) noexcept {
  if (durability == Durability::kOnReturn) return "on-return";
  return durability == Durability::kSoon ? "soon" : "process-crash";
}

}  // namespace

OpenOptions PoolRunOptions::open(std::uint32_t users) const {
  OpenOptions options = tatp_open_options({}, OpenMode::kOpenOrCreate, users, {});
  options.tuning.merge_niceness = merge.niceness;
  options.index_place = index_place;
  options.tuning.clock = clock;
  options.tuning.restart_budget = std::chrono::milliseconds(restart_budget_ms);
  options.tuning.journal_bytes = std::uint64_t{journal_mb} << 20;
  options.crash_ring = commit.durability == Durability::kProcessCrash;
  return options;
}

const std::string& PoolRunOptions::guarantee(const Statistics& statistics) const noexcept {
  return commit.durability == Durability::kOnReturn ? statistics.guarantee
                                                    : statistics.guarantee_soon;
}

bench::Json PoolRunOptions::json(const Statistics& statistics) const {
  const bench::Environment environment = bench::environment();
  bench::Json json = {{"commit", environment.commit}, {"medium", statistics.medium}};
  json["restart_budget_ms"] = restart_budget_ms;
  json["journal_mb"] = journal_mb;
  json["flush"] = statistics.flush;
  json["dirty_shutdowns"] = statistics.dirty_shutdowns;
  json["guarantee"] = guarantee(statistics);
  json["durability"] = {{"kind", durability_name(commit.durability)}};
  if (commit.durability == Durability::kSoon) json["durability"]["soon_ms"] = commit.soon.count();
  json["index"] = to_string(index_place);
  json["layout"] = to_string(layout);
  json["isolation"] = to_string(isolation);
  json["clock"] = to_string(statistics.clock);
  json["merge"] = name_of(merge.mode);
  json["merged_first"] = merge.first;
  json["pool_bytes"] = statistics.pool_allocated_bytes;
  json["pool_used_bytes"] = statistics.pool_used_bytes;
  json["dram_index_bytes"] = statistics.dram_index_bytes;
  json["hint_index_bytes"] = statistics.hint_index_bytes;
  json["machine"] = bench::to_json(environment);
  return json;
}

void add_run_pool_options(CLI::App& command, PoolRunOptions& options) {
  add_used_pool_options(command, options.pool, options.keep);
}

void add_run_options(CLI::App& command, PoolRunOptions& options) {
  add_merge_options(command, options.merge);
  add_index_option(command, options.index_place);
  add_layout_option(command, options.layout);
  add_isolation_option(command, options.isolation);
  add_clock_option(command, options.clock);
  add_journal_options(command, options.restart_budget_ms, options.journal_mb);
  add_durability_option(command, options.commit);
  add_process_crash_option(command, options.commit)->excludes("--durable-within");
}

}  // namespace flugs::tools
