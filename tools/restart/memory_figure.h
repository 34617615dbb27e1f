#pragma once

#include <cstdint>
#include <string>

#include "bench/tatp/tatp_request.h"
#include "tools/restart/restart_points.h"

namespace flugs::tools {

/// TATP's reads of one engine, on a disk, in a process that has less memory than the database.
struct MemoryRun {
  std::string key;
  std::string name;
  std::string setup;
  std::string medium;
  std::uint64_t database_bytes = 0;  ///< of flugs: used ones of the pool; else what its files take
  std::uint64_t memory_bytes = 0;    ///< that its process had, page cache included
  double load_seconds = 0;
  double reads_per_second = 0;
  double faults_per_read = 0;  ///< page faults that waited for the disk
};

struct MemoryRunOptions {
  std::string path;  ///< of the database; nothing is there
  std::uint32_t subscribers = 0;
  std::uint32_t users = 0;
  std::uint64_t seed = 0;
  bench::TatpDistribution distribution = bench::TatpDistribution::kUniform;
  double seconds = 0;              ///< of warming up, and again of measuring
  std::uint64_t memory_bytes = 0;  ///< 0: a quarter of what the database takes
};

/// Loads the database, in main for flugs, and then reads from it in another process. Fails when one
/// of the processes does; kIoError: memory cannot be limited.
Status measure_in_memory(const MemoryRunOptions& options, const RestartEngine& engine,
                         ProgressBar& bar, MemoryRun& run);

bench::Json to_json(const MemoryRun& run);

}  // namespace flugs::tools
