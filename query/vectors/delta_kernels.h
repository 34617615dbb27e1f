#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/row_blocks.h"
#include "columns/cells/row_layout.h"

namespace flugs::query {

/// The cells of one column in rows of the delta, which lie side by side.
struct RowCells {
  const std::byte* rows = nullptr;  ///< the first row
  std::size_t row_bytes = 0;
  columns::RowLayout::Access access{};
  const std::uint32_t* positions = nullptr;  ///< ascending; null: all rows from the first on
};

/// The cells of one column, or bits that mark NULL, in rows whose columns are apart (RowBlock).
struct PartCells {
  const std::byte* blocks = nullptr;  ///< the block with the first row
  std::size_t block_bytes = 0;
  std::uint32_t first = 0;  ///< the first row's number in that block
  RowPart part{};           ///< of 8 bytes at most
  unsigned shift = 0;       ///< a cell is these bits of the part
  std::uint64_t mask = 0;
  const std::uint32_t* positions = nullptr;  ///< ascending; null: all rows from the first on

  /// The part of the first row of a block, `number` rows behind the first row's block.
  const std::byte* array(std::size_t number) const noexcept {
    return part.array_in(blocks + number / RowBlock::kRows * block_bytes);
  }
};

/// Places of the entries of a dictionary of fixed-width values. Those of a chunk are contiguous:
/// entry `code` is at bases[chunk of the code] + code * entry_bytes.
struct DictionaryEntries {
  std::span<const std::uint64_t> bases;
  std::uint32_t entry_bytes = 8;  ///< 8: a payload of 32 bits and its sign; 16: one of 64 bits
};

/// The inner loops over rows of the delta, for one instruction set.
///
/// Other threads write to rows and to dictionaries meanwhile. Words are read as aligned 8-byte
/// words, each only once; `part_codes` and `part_integers` read each part once, whole. If `settled`
/// is called first, words of a cell are read after its row's stamps: by acquire loads in the plain
/// route, by the order of loads on x86-64 in the others.
struct DeltaKernels {
  /// Rows at this distance are prefetched while the current ones are read.
  static constexpr std::size_t kAheadBytes = 8192;

  const char* name;

  /// A bit for each of up to 64 rows: whether it was created at a time-stamp up to `snapshot` and
  /// is neither deleted nor being deleted, so that nothing must be looked up. Starts fetching later
  /// rows, if rows are further apart than their stamps are long.
  std::uint64_t (*settled)(const std::byte* rows, std::size_t row_bytes, std::size_t count,
                           std::uint64_t snapshot);
  /// Cells of at most 32 bits, without their signs. Returns the greatest.
  std::uint32_t (*codes)(const RowCells& cells, std::size_t count, std::uint32_t* out);
  /// Cells of at most 64 bits; `is_narrow`: of 32 bits with a sign.
  void (*integers)(const RowCells& cells, std::size_t count, bool is_narrow, std::int64_t* out);
  /// The same as `codes` and `integers` for rows whose columns are apart.
  std::uint32_t (*part_codes)(const PartCells& cells, std::size_t count, std::uint32_t* out);
  void (*part_integers)(const PartCells& cells, std::size_t count, bool is_narrow,
                        std::int64_t* out);
  /// Payloads of codes that have an entry.
  void (*look_up)(const DictionaryEntries& entries, const std::uint32_t* codes, std::size_t count,
                  std::int64_t* out);
};

/// One per instruction set, each in its file.
const DeltaKernels& plain_delta_kernels() noexcept;
const DeltaKernels& avx512_delta_kernels() noexcept;

/// The kernels of the current columns::kernel_route(); for AVX2 the plain ones, because its gathers
/// of four words are no faster than loads.
const DeltaKernels& delta_kernels() noexcept;

}  // namespace flugs::query
