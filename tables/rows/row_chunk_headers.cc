#include "tables/rows/row_chunk_headers.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <span>
#include <utility>

#include "base/check.h"
#include "tables/catalog/catalog_layout.h"

namespace flugs::engine {

namespace {

static_assert(sizeof(RowChunkLayout) % alignof(columns::CellLayout) == 0);
// Pools are mapped at pages.
static_assert(pmem::kPageBytes % RowBlock::kAlignment == 0);

std::uint64_t header_bytes(std::size_t columns) noexcept {
  return (sizeof(RowChunkLayout) + columns * sizeof(columns::CellLayout) + 63) / 64 * 64;
}

std::uint64_t checksum_of(const RowChunkLayout& chunk) noexcept {
  const auto* from = reinterpret_cast<const std::byte*>(&chunk.table_id);
  const auto* end = reinterpret_cast<const std::byte*>(&chunk + 1) +
                    chunk.column_count * sizeof(columns::CellLayout);
  return XXH3_64bits(from, static_cast<std::size_t>(end - from));
}

}  // namespace

std::uint64_t RowChunkHeaders::chunk_bytes(std::size_t index,
                                           const columns::RowLayout& layout) const noexcept {
  // Blocks of rows are aligned more than extents.
  const std::uint64_t gap = layout.is_in_columns() ? RowBlock::kAlignment - pmem::kLineBytes : 0;
  return header_bytes(layout.cells().size()) + gap +
         layout.bytes_of_rows(geometry_.elements_in(index));
}

void RowChunkHeaders::lead_to_rows(RowChunk& chunk, std::uint64_t offset,
                                   const columns::RowLayout& layout) const noexcept {
  const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(pool_.base()) + offset;
  std::uintptr_t rows = begin + header_bytes(layout.cells().size());
  if (layout.is_in_columns()) {
    // Else rows would lie elsewhere when the pool is opened at another address.
    FLUGS_CHECK(reinterpret_cast<std::uintptr_t>(pool_.base()) % RowBlock::kAlignment == 0);
    rows = (rows + RowBlock::kAlignment - 1) & ~std::uintptr_t{RowBlock::kAlignment - 1};
  }
  FLUGS_CHECK((rows - begin) / pmem::kLineBytes <= 0xFF && (rows - begin) % pmem::kLineBytes == 0);
  chunk.lead_lines = static_cast<std::uint8_t>((rows - begin) / pmem::kLineBytes);
  chunk.is_in_columns = layout.is_in_columns();
  chunk.row_bytes = static_cast<std::uint16_t>(layout.row_bytes());
  chunk.row_zero =
      rows - (chunk.is_in_columns ? 0 : std::uintptr_t{chunk.first_row} * chunk.row_bytes);
}

std::uint64_t RowChunkHeaders::offset_of(const RowChunk& chunk) const noexcept {
  return static_cast<std::uint64_t>(chunk.first_address() - pool_.base()) -
         std::uint64_t{chunk.lead_lines} * pmem::kLineBytes;
}

Status RowChunkHeaders::corrupt(std::size_t index, std::uint64_t offset, const char* what,
                                std::uint64_t expected, std::uint64_t found) const {
  return Status(StatusCode::kCorrupt,
                fmt::format("{}: {}: chunk {} at offset {}: {}: expected {}, found {}",
                            pool_.path(), owner_, index, offset, what, expected, found));
}

Result<columns::RowLayout> RowChunkHeaders::read(std::size_t index, std::uint64_t offset) const {
  const auto corrupt = [&](const char* what, std::uint64_t expected, std::uint64_t found) {
    return this->corrupt(index, offset, what, expected, found);
  };
  const auto& header = *pool_.at(pmem::OffsetPtr<RowChunkLayout>{offset});
  if (header.magic != RowChunkLayout::kMagic)
    return corrupt("magic", RowChunkLayout::kMagic, header.magic);
  // Only columns that were added later may be missing.
  const std::size_t columns = header.column_count;
  if (columns > columns_.size() || columns == 0 || !columns_.may_lack(columns))
    return corrupt("columns", columns_.size(), columns);
  if (offset > pool_.medium().bytes() - header_bytes(columns))
    return corrupt("end of header inside pool, pool bytes", pool_.medium().bytes(), offset);
  if (header.checksum != checksum_of(header))
    return corrupt("checksum", checksum_of(header), header.checksum);
  if (header.table_id != table_id_) return corrupt("table", table_id_, header.table_id);
  if (header.chunk_index != index) return corrupt("chunk index", index, header.chunk_index);
  if (header.row_count != geometry_.elements_in(index))
    return corrupt("rows", geometry_.elements_in(index), header.row_count);
  if (header.row_shape > static_cast<std::uint8_t>(columns::kLastRowShape))
    return corrupt("shape of its rows, at most", static_cast<std::uint64_t>(columns::kLastRowShape),
                   header.row_shape);
  const std::size_t misplaced =
      reinterpret_cast<std::uintptr_t>(pool_.base()) % RowBlock::kAlignment;
  if (header.row_shape != 0 && misplaced != 0)  // a buffer, which an audit is given
    return corrupt("place of the pool in memory, above a multiple of 1024 bytes", 0, misplaced);
  const std::span cells(reinterpret_cast<const columns::CellLayout*>(&header + 1), columns);
  Result<columns::RowLayout> layout = columns::RowLayout::from_pool(
      cells, header.row_bytes, static_cast<columns::RowShape>(header.row_shape));
  for (std::size_t i = 0; i < columns && layout.ok(); ++i) {
    const bool has_cell = layout->bits(i) != 0;
    const columns::Column* column = columns_[i]->at_edition(layout->edition(i));
    if (has_cell && column == nullptr)
      return corrupt("edition of a cell, at most", columns_[i]->edition(), layout->edition(i));
    if (has_cell ? !column->fits(layout->kind(i), layout->bits(i)) : !columns_[i]->is_dropped())
      return corrupt("kind and width of cell as its column needs, column", i, layout->bits(i));
  }
  return layout;
}

// The tag of a chunk that has the layout of the chunk before. It shows a damaged pointer, or a
// pointer to another chunk, without a look at the chunk.
std::uint16_t RowChunkHeaders::tag(std::size_t index, std::uint64_t offset,
                                   const columns::RowLayout& layout) const noexcept {
  const std::uint64_t words[] = {table_id_, index, offset,
                                 layout.row_bytes() | static_cast<std::uint64_t>(layout.shape())
                                                          << 32};
  const std::uint64_t seed = XXH3_64bits(words, sizeof words);
  const std::span<const columns::CellLayout> cells = layout.cells();
  return static_cast<std::uint16_t>(XXH3_64bits_withSeed(cells.data(), cells.size_bytes(), seed) |
                                    1);
}

Result<pmem::Extent> RowChunkHeaders::make(std::size_t index, const columns::RowLayout& layout,
                                           pmem::Persister& persister) {
  const std::size_t columns = layout.cells().size();
  FLUGS_CHECK(columns != 0 && columns <= 0xFFFF);
  Result<pmem::Extent> extent = pool_.allocator().allocate(chunk_bytes(index, layout), persister);
  if (!extent.ok()) return extent;
  auto& header = *pool_.at(pmem::OffsetPtr<RowChunkLayout>{extent->offset});
  header.magic = RowChunkLayout::kMagic;
  header.table_id = table_id_;
  header.chunk_index = static_cast<std::uint32_t>(index);
  header.row_bytes = layout.row_bytes();
  header.row_count = static_cast<std::uint32_t>(geometry_.elements_in(index));
  header.column_count = static_cast<std::uint16_t>(columns);
  header.row_shape = static_cast<std::uint8_t>(layout.shape());
  std::memcpy(&header + 1, layout.cells().data(), columns * sizeof(columns::CellLayout));
  header.checksum = checksum_of(header);
  persister.flush(&header, header_bytes(columns), "row_chunk/2");
  return extent;
}

std::uint16_t RowChunkHeaders::tag_of_nothing(std::size_t index) const noexcept {
  const std::uint64_t words[] = {table_id_, index, pmem::ChunkListLayout::kNoExtent};
  return static_cast<std::uint16_t>(XXH3_64bits(words, sizeof words) | 1);
}

columns::RowLayout RowChunkHeaders::layout_of_made(std::uint64_t offset) const {
  const auto& header = *pool_.at(pmem::OffsetPtr<RowChunkLayout>{offset});
  const std::span cells(reinterpret_cast<const columns::CellLayout*>(&header + 1),
                        header.column_count);
  Result<columns::RowLayout> layout = columns::RowLayout::from_pool(
      cells, header.row_bytes, static_cast<columns::RowShape>(header.row_shape));
  FLUGS_CHECK(layout.ok());  // `make` has just written it
  return *std::move(layout);
}

}  // namespace flugs::engine
