#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "pmem/space/chunk_list_layout.h"

namespace flugs::columns {

/// In the pool: bytes of strings that do not fit a cell.
struct StringHeapLayout {
  pmem::ChunkListLayout chunks;
  /// Chunk index in the upper 24 bits, bytes in the lower 40. Strings may lie below it; after a
  /// crash the next string is written behind it.
  std::uint64_t reserved_end;
  std::uint64_t reserved[7];
};
static_assert(sizeof(StringHeapLayout) == 128);
static_assert(offsetof(StringHeapLayout, reserved_end) == 64);
static_assert(std::is_trivially_copyable_v<StringHeapLayout> &&
              std::is_standard_layout_v<StringHeapLayout>);

/// First 64 bytes of every heap chunk.
struct StringHeapChunkLayout {
  static constexpr std::uint64_t kMagic = 0x50414548'47554c46u;  // "FLUGHEAP"
  std::uint64_t magic;
  std::uint64_t bytes;     ///< of the chunk, this header included
  std::uint64_t checksum;  ///< XXH3-64 of the two words above
  std::uint64_t reserved[5];
};
static_assert(sizeof(StringHeapChunkLayout) == 64);
static_assert(offsetof(StringHeapChunkLayout, checksum) == 16);
static_assert(std::is_trivially_copyable_v<StringHeapChunkLayout> &&
              std::is_standard_layout_v<StringHeapChunkLayout>);

/// In the pool: the values of a column, by ValueID. Entries are
///   types of up to 4 bytes   8 bytes: value, 32-bit proof
///   types of 8 bytes        16 bytes: value, 64-bit proof
///   string and bytes        32 bytes: text cell (16), 64-bit proof, 8 reserved
/// A proof is a hash of value and ValueID, never 0. If the proof of an entry does not fit, a crash
/// tore the entry before any commit could refer to it.
struct DictionaryLayout {
  pmem::ChunkListLayout chunks;
  /// ValueID of NULL, plus 1; 0: none. It counts only if that entry is NULL's, because a crash may
  /// have lost the entry. Not used when the index is in the pool, which has a word for it.
  std::uint64_t null_code;
  std::uint64_t reserved[7];
};
static_assert(sizeof(DictionaryLayout) == 128);
static_assert(offsetof(DictionaryLayout, null_code) == 64);

/// In the pool, in the table's extent: the persistent part of a column.
struct ColumnLayout {
  std::uint8_t type;      ///< flugs::Type; immutable, as all fields before `dictionary`
  std::uint8_t encoding;  ///< flugs::Encoding, kDictionary or kDirect
  std::uint8_t nullable;  ///< 0 or 1
  std::uint8_t scale;
  std::uint32_t expected_distinct;
  std::uint64_t last_taken;  ///< of an auto-increment column: no number up to it is given again
  std::uint64_t reserved[6];
  DictionaryLayout dictionary;
  StringHeapLayout heap;
};
static_assert(sizeof(ColumnLayout) == 320);
static_assert(offsetof(ColumnLayout, expected_distinct) == 4);
static_assert(offsetof(ColumnLayout, last_taken) == 8);
static_assert(offsetof(ColumnLayout, dictionary) == 64);
static_assert(offsetof(ColumnLayout, heap) == 192);
static_assert(std::is_trivially_copyable_v<ColumnLayout> &&
              std::is_standard_layout_v<ColumnLayout>);

}  // namespace flugs::columns
