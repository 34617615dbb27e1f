#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "flugs/status.h"
#include "fuzz/pool_map.h"

namespace flugs::fuzz {

/// A valid pool, and where what stands in it.
struct SamplePool {
  std::string name;
  std::vector<std::byte> bytes;
  std::uint64_t root = 0;  ///< offset of the PoolRoot
  std::vector<Region> regions;
  std::uint64_t remarks = 0;  ///< what the audit says of it; never damage
};

/// Pools in memory of all kinds: empty, small, of every type, without keys, with many chunks and
/// long strings, left behind by a crash in the middle of transactions. The same for the same seed.
Result<std::vector<SamplePool>> make_memory_samples(std::uint64_t seed);

/// Some of these kinds as they are in files: `path` is made and removed again.
Result<std::vector<SamplePool>> make_file_samples(std::uint64_t seed, const std::string& path);

}  // namespace flugs::fuzz
