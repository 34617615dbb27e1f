#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "flugs/status.h"

namespace flugs::fuzz {

struct PoolFuzzOptions {
  std::uint64_t inputs = 20000;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;       ///< number of the first input
  std::uint64_t file_every = 0;  ///< every Nth input is a pool in a file; 0: none
  std::uint32_t hang_seconds = 20;
  std::string file;  ///< where that pool lies
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// An input that did what none may do.
struct PoolFuzzFailure {
  std::uint64_t input = 0;
  std::string what;
};

struct PoolFuzzFigures {
  std::uint64_t inputs = 0;
  std::uint64_t refused = 0;   ///< opening said no
  std::uint64_t answered = 0;  ///< opened, read, written to
  std::uint64_t crashed = 0;
  std::uint64_t hung = 0;
  std::uint64_t vouched = 0;                    ///< damaged under a checksum only
  std::uint64_t undetected_under_checksum = 0;  ///< of these, nobody noticed
  std::uint64_t in_files = 0;
  double seconds = 0;
  std::vector<PoolFuzzFailure> failures;  ///< the first few of each sort
};

/// Damages valid pools and uses them, in processes of their own that may die: each input is made
/// from the seed and its number alone. Fails when no process can be started.
Result<PoolFuzzFigures> fuzz_pools(const PoolFuzzOptions& options);

/// One input, in this process: tells `say` what was done to the pool, then what became of it.
Status replay_pool_input(const PoolFuzzOptions& options, std::uint64_t input,
                         const std::function<void(const std::string&)>& say);

}  // namespace flugs::fuzz
