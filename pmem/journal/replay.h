#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "pmem/journal/journal_file.h"
#include "pmem/journal/record_ring.h"

namespace flugs::pmem {

/// Where the whole records of a journal end.
struct ReplayEnd {
  JournalPlace place = 0;
  std::uint64_t epoch = 0;  ///< of the last record; 0: the journal is new
};

/// Stores the images of the journal, from its tail on, into the pool, and calls `stored` for each
/// run. It may be cut short and repeated. kCorrupt: the records end before the place up to which
/// the pool's file needs them, or name lines outside of the pool. kIoError.
Result<ReplayEnd> replay(const JournalFile& journal, std::span<std::byte> pool,
                         FunctionRef<void(std::uint64_t offset, std::uint64_t bytes)> stored);

/// Stores the images of the records that wait in the ring that a killed process left, in the same
/// way. Returns the place where they end. kCorrupt.
Result<JournalPlace> replay_left(
    const RecordRing& ring, const JournalFile& journal, std::span<std::byte> pool,
    FunctionRef<void(std::uint64_t offset, std::uint64_t bytes)> stored);

}  // namespace flugs::pmem
