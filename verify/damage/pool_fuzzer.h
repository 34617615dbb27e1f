#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flugs/status.h"

namespace flugs::damage {

struct PoolFuzzOptions {
  std::uint64_t inputs = 20000;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;       ///< number of the first input
  std::uint64_t file_every = 0;  ///< every Nth input is a pool in a file; 0: none
  std::uint32_t hang_seconds = 20;
  std::string file;  ///< path of that pool
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// An input with a forbidden outcome.
struct PoolFuzzFailure {
  std::uint64_t input = 0;
  std::string what;
};

struct PoolFuzzFigures {
  std::uint64_t inputs = 0;
  std::uint64_t refused = 0;   ///< opening refused the pool
  std::uint64_t answered = 0;  ///< opened, read, and written to
  std::uint64_t crashed = 0;
  std::uint64_t hung = 0;
  std::uint64_t vouched = 0;                    ///< damaged under a checksum only
  std::uint64_t undetected_under_checksum = 0;  ///< of these, damage that was not noticed
  std::uint64_t in_files = 0;
  double seconds = 0;
  std::vector<PoolFuzzFailure> failures;  ///< the first few of each sort
};

/// Damages valid pools and uses them, in processes of their own that may die. Each input depends
/// only on the seed and its number. Fails when no process can be started.
Result<PoolFuzzFigures> fuzz_pools(const PoolFuzzOptions& options);

/// Runs one input in this process: reports to `say` the damage done to the pool, then the outcome.
Status replay_pool_input(const PoolFuzzOptions& options, std::uint64_t input,
                         const std::function<void(const std::string&)>& say);

}  // namespace flugs::damage
