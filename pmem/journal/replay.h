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

/// The memory that a journal is replayed into: what the pool's file has, in pages of its own.
struct ReplayMemory {
  std::span<std::byte> pool;
  /// The range has got images.
  FunctionRef<void(std::uint64_t offset, std::uint64_t bytes)> stored;
  /// These whole pages must read as the pool's file has them: images that they have got are older.
  FunctionRef<Status(std::uint64_t offset, std::uint64_t bytes)> revoked;
};

/// Stores the images of the journal, from its tail on. It may be cut short and repeated. kCorrupt:
/// the records end before the place up to which the pool's file needs them, or name lines outside
/// of the pool. kIoError, and what `revoked` fails with.
Result<ReplayEnd> replay(const JournalFile& journal, const ReplayMemory& memory);

/// Stores the images of the records that wait in the ring that a killed process left, in the same
/// way. Returns the place where they end. kCorrupt.
Result<JournalPlace> replay_left(const RecordRing& ring, const JournalFile& journal,
                                 const ReplayMemory& memory);

}  // namespace flugs::pmem
