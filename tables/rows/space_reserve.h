#pragma once

#include <algorithm>
#include <cstdint>

#include "pmem/space/extent_allocator.h"

namespace flugs::engine {

/// What a pool of this size keeps free for deletions and merges, if its largest chunk of rows has
/// `chunk_bytes`. A merge writes the rows of a chunk once more, and perhaps records beside them;
/// the chunk is given back before the next one is merged. So half of what merges have must lie in
/// one piece, which is a chunk, and the other half may be lent. The 64th part of the pool is for
/// what deleting every row of it needs: intents (mvcc/intent_list.h), and stamps of rows in main.
constexpr pmem::Reserve reserve_for(std::uint64_t pool_bytes, std::uint64_t chunk_bytes) noexcept {
  const std::uint64_t merging = std::min(2 * chunk_bytes, pool_bytes / 8);
  return {.bytes = merging + pool_bytes / 64, .merging = merging, .piece = merging / 2};
}

/// What only makes something faster (index runs, records of row groups) is written if at least this
/// part of the pool is left for rows then.
constexpr std::uint64_t kPartLeftForRows = 8;

/// Whether a pool has so little room that rows come before what only makes something faster.
inline bool is_room_short(const pmem::SpaceReport& space) noexcept {
  return space.left_bytes() < space.reserved_bytes / kPartLeftForRows;
}

}  // namespace flugs::engine
