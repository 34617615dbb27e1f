#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flugs::pmem {

/// In the pool: an append-only list of extents ("chunks"), found by position. The first six stand
/// here, the others in leaf pages of 512 pointers that a root page of 512 pointers names. A chunk
/// is there when its pointer is not 0; pointers are stored in order, and change only to another
/// chunk of the same meaning, or to itself without its tag. A pointer is an offset, a multiple of
/// 64, in bits 0 to 47, and a tag in the others.
struct ChunkListLayout {
  static constexpr std::size_t kInlineChunks = 6;
  static constexpr std::size_t kPagePointers = 512;  // 4 KB pages
  static constexpr std::size_t kPageBytes = kPagePointers * 8;
  static constexpr std::size_t kChunksMax = kInlineChunks + kPagePointers * kPagePointers;

  /// A tag that is not 0 says that the chunk looks like the one before it, so that opening need not
  /// look at it; that one is not replaced before the tag is 0. What else it says is its owner's.
  static constexpr unsigned kTagShift = 48;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kTagShift) - 1;

  std::uint64_t inline_chunks[kInlineChunks];
  std::uint64_t root_page;
  std::uint64_t reserved;
};
static_assert(sizeof(ChunkListLayout) == 64);
static_assert(std::is_trivially_copyable_v<ChunkListLayout> &&
              std::is_standard_layout_v<ChunkListLayout>);

}  // namespace flugs::pmem
