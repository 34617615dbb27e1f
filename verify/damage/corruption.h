#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/support/random.h"
#include "verify/damage/sample_pools.h"

namespace flugs::damage {

/// Describes the damage done to a pool.
struct Corruption {
  std::string words;        ///< for people, one clause per change
  bool is_vouched = false;  ///< one change only, under a checksum that was not corrected
  std::uint64_t bytes = 0;  ///< size that the pool has now
};

/// Damages `pool`, a copy of `samples[index]`, as `random` says. It makes one to four changes of
/// bits, words, pages or whole structures, with or without correcting their checksums; now and then
/// it truncates the pool.
Corruption corrupt(std::span<std::byte> pool, const std::vector<SamplePool>& samples,
                   std::size_t index, bench::Random& random);

}  // namespace flugs::damage
