#pragma once

#include <cstdint>
#include <string>

#include "bench/support/json.h"
#include "flugs/database.h"
#include "tools/support/delta_layout.h"
#include "tools/support/tatp_options.h"

namespace flugs::tools {

/// Where and how the transactions of a workload run.
struct PoolRunOptions {
  std::string pool;
  bool keep = false;
  TatpMerge merge;
  IndexPlace index_place = kDefaultIndexPlace;
  TableLayout layout = TableLayout::kRows;
  Isolation isolation = Isolation::kSnapshot;
  CommitOptions commit;
  std::uint32_t restart_budget_ms = 20;
  std::uint32_t journal_mb = 0;  ///< 0: by the size of the pool
  CommitClock clock = CommitClock::kAutomatic;

  /// How its pool is opened, but for the path.
  OpenOptions open(std::uint32_t users) const;
  /// What a commit of this run guarantees.
  const std::string& guarantee(const Statistics& statistics) const noexcept;
  /// The options, what the database made of them, the commit that was measured, and the machine.
  bench::Json json(const Statistics& statistics) const;
};

/// --pool and --keep, which come first in the help, and the others.
void add_run_pool_options(CLI::App& command, PoolRunOptions& options);
void add_run_options(CLI::App& command, PoolRunOptions& options);

}  // namespace flugs::tools
