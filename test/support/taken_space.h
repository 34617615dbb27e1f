#pragma once

#include <cstdint>
#include <vector>

#include "pmem/pool/pool.h"

namespace flugs::test {

/// Takes all space that new data may have; release the extents before the pool is closed.
inline std::vector<pmem::Extent> take_all_space(pmem::Pool& pool) {
  pmem::Persister persister(pool.medium());
  std::vector<pmem::Extent> all;
  for (std::uint64_t bytes = std::uint64_t{1} << 24; bytes >= 64; bytes /= 2)
    for (;;) {
      const Result<pmem::Extent> extent = pool.allocator().allocate(bytes, persister);
      if (!extent.ok()) break;
      all.push_back(*extent);
    }
  persister.fence("test");
  return all;
}

}  // namespace flugs::test
