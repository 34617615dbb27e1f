#pragma once

#include <cstdint>
#include <string>

#include "flugs/database.h"

namespace flugs::tools {

/// How the processes and the audits open the pool.
OpenOptions tpcc_open_options(const std::string& pool, OpenMode mode, std::uint32_t users,
                              IndexPlace place);

struct TpccKillOptions {
  std::string pool;
  std::uint32_t rounds = 0;
  std::uint32_t users = 0;
  std::uint32_t run_ms_max = 0;
  std::uint32_t merge_interval_ms = 0;  ///< 0: tables are not merged
  bool process_crash_only = false;
  std::uint64_t seed = 0;
  IndexPlace index_place = kDefaultIndexPlace;
  bool keep = false;
  std::string json;
};

/// `flugs prove kill-loop --workload tpcc`: TPC-C's transactions in a process that is killed; after
/// each kill all consistency conditions, and each acknowledged New-Order, Payment and Delivery.
/// Gives the exit status.
int run_tpcc_kill_loop(const TpccKillOptions& options);

}  // namespace flugs::tools
