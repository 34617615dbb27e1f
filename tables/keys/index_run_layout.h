#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flugs::engine {

/// In the pool: the key indexes of some row groups of a table, immutable (decision 0014). One
/// extent: this header, `key_count` IndexRunKeyLayouts, then the entries of the keys.
struct IndexRunLayout {
  static constexpr std::uint64_t kMagic = 0x4e55525844494c46u;  // "FLIDXRUN"
  std::uint64_t magic;
  std::uint64_t checksum;  ///< XXH3-64 of the rest of this header and the IndexRunKeyLayouts
  std::uint64_t bytes;     ///< of the extent
  std::uint32_t table_id;
  std::uint16_t key_count;
  std::uint16_t reserved0;
  std::uint32_t key_additions;  ///< to the table, when the run was made
  std::uint32_t reserved1;
  std::uint64_t reserved2[3];
};
static_assert(sizeof(IndexRunLayout) == 64);
static_assert(offsetof(IndexRunLayout, bytes) == 16);  // the checksum is of all from there on

/// In the pool: one key in a run. Offsets are from the beginning of the run.
///
/// Slots: fingerprint (hash bits 32..63) in the upper half, row id + 1 in the lower; 0 is empty.
/// Slots are in ascending order. Each is in the home line (of eight slots) of its fingerprint, or
/// in the next slot behind it that is free: so a search for a fingerprint ends at an empty slot or
/// a greater fingerprint.
struct IndexRunKeyLayout {
  std::uint64_t slots_offset;  ///< 0: the key is not unique
  std::uint64_t home_lines;    ///< 1 to 2^32
  std::uint64_t slot_count;    ///< with room behind the last home line; a multiple of 8
  std::uint64_t hashed_entries;
  std::uint64_t prefixes_offset;  ///< first 8 bytes of keys, in the order of keys; 0: not ordered
  std::uint64_t rows_offset;      ///< 32-bit row ids of the same
  std::uint64_t fences_offset;    ///< every 64th prefix, from the first on: a search begins there
  std::uint64_t ordered_entries;
  std::uint64_t checksum;  ///< XXH3-64 of the slots, prefixes, rows and fences, chained by seed
  std::uint64_t reserved[7];
};
static_assert(sizeof(IndexRunKeyLayout) == 128);
static_assert((sizeof(IndexRunLayout) + sizeof(IndexRunKeyLayout)) % 64 == 0);  // slots in lines

/// In the pool: the runs in use, and the chunks of the table that each of them covers. One extent:
/// this header, `run_count` offsets, then as many sets of chunks: a bit per chunk, in
/// ceil(chunk_count / 64) words. No chunk is in two sets, and each is a row group.
struct IndexRunListLayout {
  static constexpr std::uint64_t kMagic = 0x5453494c58444c46u;  // "FLDXLIST"
  static constexpr std::uint32_t kRunsMax = 256;
  std::uint64_t magic;
  std::uint64_t checksum;  ///< XXH3-64 of everything below, offsets and sets included
  std::uint64_t bytes;     ///< of the extent
  std::uint32_t table_id;
  std::uint32_t run_count;    ///< 1 to kRunsMax; the oldest first
  std::uint32_t chunk_count;  ///< those from here on are in no set
  std::uint32_t reserved0;
  std::uint64_t reserved1[3];
};
static_assert(sizeof(IndexRunListLayout) == 64);
static_assert(offsetof(IndexRunListLayout, bytes) == 16);  // likewise
static_assert(std::is_trivially_copyable_v<IndexRunLayout> &&
              std::is_standard_layout_v<IndexRunLayout> &&
              std::is_trivially_copyable_v<IndexRunKeyLayout> &&
              std::is_standard_layout_v<IndexRunKeyLayout> &&
              std::is_trivially_copyable_v<IndexRunListLayout> &&
              std::is_standard_layout_v<IndexRunListLayout>);

}  // namespace flugs::engine
