#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace flugs::damage {

/// The kind of structure in a part of a pool.
enum class Part : std::uint8_t {
  kObjectHeader,  ///< of libpmemobj, with its descriptor
  kLanes,         ///< of libpmemobj
  kObjectHeap,    ///< heap, zone and chunk headers of libpmemobj
  kPoolHeader,
  kArenas,
  kArenaLimits,
  kDatabaseRoot,
  kCatalog,
  kTable,
  kColumn,
  kAddedColumn,
  kChunkList,
  kListPage,
  kRowChunk,
  kRow,
  kRowGroup,
  kGroupPlaces,
  kGroupColumn,
  kGroupRecords,
  kBlockPointers,
  kVersions,
  kIndexList,
  kIndexRun,
  kIndexEntries,
  kDictionaryEntry,
  kHeapChunk,
  kText,
  kSlotArray,
  kGenerationLimit,
  kCommitRecord,
  kIntents,
  kIntentBlock,
  kHintIndex,
  kHintChange,
  kHintDirectory,
  kHintSegment,
};
inline constexpr std::size_t kPartsCount = static_cast<std::size_t>(Part::kHintSegment) + 1;
std::string_view to_string(Part part) noexcept;

struct Region {
  Part part;
  bool is_vouched;  ///< a checksum or a proof covers every byte of it
  std::uint64_t offset;
  std::uint64_t bytes;
};

/// Every structure of a whole pool, found from docs/format.md and not from the code that opens
/// pools: an independent reading. `root` is the offset of the PoolRoot.
std::vector<Region> map_pool(std::span<const std::byte> pool, std::uint64_t root);

/// Corrects the checksum of a changed structure, so that code behind the check of checksums is
/// reached, too. Does nothing for parts without a checksum.
void reseal(std::span<std::byte> pool, std::uint64_t root, const Region& region);

}  // namespace flugs::damage
