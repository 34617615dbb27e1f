#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/status.h"
#include "pmem/pool.h"
#include "pmem/pool_format.h"

namespace flugs::pmem {

/// Has libpmemobj make a pool of the empty file of `max_bytes` to which `file` leads, in which what
/// it writes to is taken from the medium: a root object for all arenas, and the arenas, which are
/// returned. Only creation needs the library, so only creation loads it (docs/decisions/0016).
/// Thread-safety: any. Fails with: kIoError (the library cannot be loaded, too), kBusy, kReadOnly,
/// kOutOfSpace.
Result<std::vector<ArenaRecord>> make_objects(const std::string& file, const PoolOptions& options,
                                              std::uint64_t max_bytes);

}  // namespace flugs::pmem
