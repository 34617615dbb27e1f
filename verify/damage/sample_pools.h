#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flugs/status.h"
#include "verify/damage/pool_map.h"

namespace flugs::damage {

/// A valid pool, and a map of its structures.
struct SamplePool {
  std::string name;
  std::vector<std::byte> bytes;
  std::uint64_t root = 0;  ///< offset of the PoolRoot
  std::vector<Region> regions;
  std::uint64_t remarks = 0;  ///< of the audit; a sample never has damage
};

/// Makes pools in memory of all kinds: empty, small, with every type, without keys, with many
/// chunks and long strings, and left by a crash in the middle of transactions. The same seed gives
/// the same pools.
Result<std::vector<SamplePool>> make_memory_samples(std::uint64_t seed);

/// Makes some of these kinds as files; makes the file `path` and removes it. On a disk it makes
/// no sample that a crash left.
Result<std::vector<SamplePool>> make_file_samples(std::uint64_t seed, const std::string& path);

/// Removes a pool's file, and on a disk its journal.
void remove_pool_file(const std::string& path);

}  // namespace flugs::damage
