#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flugs::pmem {

/// In the pool: an append-only list of extents ("chunks"), found by position. The first six stand
/// here, the others in leaf pages of 512 pointers that a root page of 512 pointers names. A chunk
/// is there when its pointer is not 0; pointers are stored in order, and change only to another
/// chunk of the same meaning. A pointer is an offset, a multiple of 64, and perhaps kLikeBefore.
struct ChunkListLayout {
  static constexpr std::size_t kInlineChunks = 6;
  static constexpr std::size_t kPagePointers = 512;  // 4 KB pages
  static constexpr std::size_t kPageBytes = kPagePointers * 8;
  static constexpr std::size_t kChunksMax = kInlineChunks + kPagePointers * kPagePointers;

  /// The chunk looks like the one before it, so that opening need not look at it; that one is not
  /// replaced before this bit is 0. Only in lists whose owner says so.
  static constexpr std::uint64_t kLikeBefore = 1;
  static constexpr std::uint64_t kOffsetMask = ~std::uint64_t{63};

  std::uint64_t inline_chunks[kInlineChunks];
  std::uint64_t root_page;
  std::uint64_t reserved;
};
static_assert(sizeof(ChunkListLayout) == 64);
static_assert(std::is_trivially_copyable_v<ChunkListLayout> &&
              std::is_standard_layout_v<ChunkListLayout>);

}  // namespace flugs::pmem
