#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace flugs::pmem {

/// In the pool: an append-only list of extents ("chunks"), found by position. The first six
/// pointers are here; the others are in leaf pages of 512 pointers, which a root page of 512
/// pointers names. A chunk exists when its pointer is not 0. Pointers are stored in order. A
/// pointer changes only to another chunk with the same meaning, or loses its tag. It consists of an
/// offset, a multiple of 64, in bits 0 to 47, and a tag in the others.
struct ChunkListLayout {
  static constexpr std::size_t kInlineChunks = 6;
  static constexpr std::size_t kPagePointers = 512;  // 4 KB pages
  static constexpr std::size_t kPageBytes = kPagePointers * 8;
  static constexpr std::size_t kChunksMax = kInlineChunks + kPagePointers * kPagePointers;

  /// A tag that is not 0, but for that of kNoExtent, says that the chunk looks like the one before
  /// it, so opening need not read it. The chunk before it is not replaced until the tag is 0. The
  /// owner may give the tag further meaning.
  static constexpr unsigned kTagShift = 48;
  static constexpr std::uint64_t kOffsetMask = (std::uint64_t{1} << kTagShift) - 1;

  /// The offset of a chunk that has nothing to store, and no extent. No pool reaches so far. Its
  /// tag is the owner's, and says which chunk it is: then a word that damage has put there is
  /// found.
  static constexpr std::uint64_t kNoExtent = kOffsetMask / 64 * 64;

  std::uint64_t inline_chunks[kInlineChunks];
  std::uint64_t root_page;
  std::uint64_t reserved;
};
static_assert(sizeof(ChunkListLayout) == 64);
static_assert(offsetof(ChunkListLayout, root_page) == 48);
static_assert(ChunkListLayout::kPageBytes == 4096);
static_assert(std::is_trivially_copyable_v<ChunkListLayout> &&
              std::is_standard_layout_v<ChunkListLayout>);

}  // namespace flugs::pmem
