#pragma once

#include <cstdint>
#include <functional>

#include "flugs/status.h"

namespace flugs::bench {

/// Rows [begin, end) of a table that is loaded on several threads.
struct BulkLoad {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint32_t threads = 1;
  /// Loads rows [begin, end), one transaction's worth, on the thread of this number; from several
  /// threads at a time.
  std::function<Status(std::uint64_t begin, std::uint64_t end, std::uint32_t thread)> load_range;
  /// Told the rows loaded of those to load, from the calling thread. May be empty.
  std::function<void(std::uint64_t done, std::uint64_t total)> progress;
};

/// Hands out the rows, 10,000 in a transaction. Fails as load_range, with the first failure.
Status load_in_parallel(const BulkLoad& load);

}  // namespace flugs::bench
