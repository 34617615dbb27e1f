#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "pmem/pool/pool_format.h"

namespace flugs::pmem {

/// Makes libpmemobj create a pool of `max_bytes` in the empty file to which `file` leads: a root
/// object for all arenas, and the arenas, which are returned. All parts of the file that the
/// library writes to must have been taken from the medium. Only creation needs the library, so only
/// creation loads it (docs/decisions/0016).
/// Thread-safety: any thread. Fails with: kIoError (also if the library cannot be loaded), kBusy,
/// kReadOnly, kOutOfSpace.
Result<std::vector<ArenaRecord>> make_objects(const std::string& file, const PoolOptions& options,
                                              std::uint64_t max_bytes);

}  // namespace flugs::pmem
