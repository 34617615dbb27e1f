#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pmem/space/chunk_list_layout.h"

namespace flugs::columns {

/// In the pool: a hash index whose entries are hints (decision 0015). `directory` names 2^depth
/// words; each holds the offset of a segment (bits 0 to 47) and a number that changes with the
/// offset (bits 48 to 63).
struct HintIndexLayout {
  std::uint64_t directory;      ///< offset, a multiple of 64, plus depth; 0: none yet
  std::uint64_t segments_used;  ///< in the slabs, counted from the first
  std::uint64_t spare;          ///< offset of a segment without a word; 0: none
  std::uint64_t durable_end;    ///< of a dictionary: entries below it, and their hints, are durable
  std::uint64_t null_code;      ///< of a dictionary: NULL's ValueID plus 1; 0: not known
  std::uint64_t reserved[3];
  pmem::ChunkListLayout slabs;

  /// The last change of the directory; applying it again does no harm.
  struct Change {
    std::uint64_t directory;  ///< the changed directory; for another one the record means nothing
    std::uint64_t first;      ///< the first changed word
    std::uint64_t span;       ///< number of words: the first half gets `lower`, the others `upper`
    std::uint64_t lower;      ///< words with their numbers
    std::uint64_t upper;
    std::uint64_t replaced;  ///< offset of the segment that the words named before; 0: none
    std::uint64_t reserved;
    std::uint64_t checksum;  ///< XXH3-64 of the words above
  };
  Change change;
};
static_assert(sizeof(HintIndexLayout) == 192);
static_assert(offsetof(HintIndexLayout, durable_end) == 24);
static_assert(offsetof(HintIndexLayout, null_code) == 32);
static_assert(offsetof(HintIndexLayout, slabs) == 64);
static_assert(offsetof(HintIndexLayout, change) == 128);
static_assert(offsetof(HintIndexLayout::Change, checksum) == 56);
static_assert(std::is_trivially_copyable_v<HintIndexLayout> &&
              std::is_standard_layout_v<HintIndexLayout>);

/// In the pool: 63 lines of eight slots each, and a line that leads to the next segment. A slot is
/// a fingerprint (bits 32 to 63) and a payload plus 1 (bits 0 to 31). 0: unused, and never used
/// while its line was full; kEmptied: unused since.
struct HintSegmentLayout {
  static constexpr std::uint32_t kLines = 63;
  static constexpr std::uint32_t kSlots = 8;
  static constexpr std::uint64_t kEmptied = std::uint64_t{1} << 32;
  std::uint64_t slots[kLines][kSlots];
  std::uint64_t next;  ///< offset of the segment that continues this one when it is full; 0: none
  std::uint64_t reserved[7];
};
static_assert(sizeof(HintSegmentLayout) == 4096);
static_assert(offsetof(HintSegmentLayout, next) == 4032);
static_assert(std::is_trivially_copyable_v<HintSegmentLayout> &&
              std::is_standard_layout_v<HintSegmentLayout>);
static_assert(static_cast<std::uint32_t>(HintSegmentLayout::kEmptied) == 0);  // no payload

}  // namespace flugs::columns
