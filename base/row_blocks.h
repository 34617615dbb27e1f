#pragma once

#include <cstddef>
#include <cstdint>

namespace flugs {

/// Where rows lie whose columns are apart (decision 0065). Rows are in blocks of kRows. A block
/// begins with the stamps of its rows, side by side. Behind them come arrays, one for each part of
/// a row: a cell, or a byte of NULL bits. The element with the row's number in the block belongs to
/// the row.
///
/// The address of a row is that of its stamps. Blocks begin at multiples of kAlignment, so the
/// address alone leads to the block, to the number of the row in it, and to the row's parts.
struct RowBlock {
  static constexpr std::size_t kRows = 64;
  static constexpr std::size_t kStampBytes = 16;
  static constexpr std::size_t kAlignment = kRows * kStampBytes;

  static std::size_t number_of(const std::byte* row) noexcept {
    return reinterpret_cast<std::uintptr_t>(row) / kStampBytes % kRows;
  }
  static const std::byte* begin_of(const std::byte* row) noexcept {
    return reinterpret_cast<const std::byte*>(reinterpret_cast<std::uintptr_t>(row) &
                                              ~std::uintptr_t{kAlignment - 1});
  }
  static std::byte* begin_of(std::byte* row) noexcept {
    return const_cast<std::byte*>(begin_of(static_cast<const std::byte*>(row)));
  }
};

/// A part of each row of a block: `bytes` of a row are in the array at `offset` * RowBlock::kRows
/// from the beginning of the block. If the parts were side by side, they would be at `offset` from
/// the beginning of the row.
struct RowPart {
  std::uint16_t offset;
  std::uint16_t bytes;

  const std::byte* array_in(const std::byte* block) const noexcept {
    return block + std::size_t{offset} * RowBlock::kRows;
  }
  const std::byte* in_row(const std::byte* row) const noexcept {
    return array_in(RowBlock::begin_of(row)) + RowBlock::number_of(row) * bytes;
  }
};

}  // namespace flugs
