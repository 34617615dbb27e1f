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
  return header_bytes(layout.cells().size()) + layout.row_bytes() * geometry_.elements_in(index);
}

std::uintptr_t RowChunkHeaders::first_row_at(std::uint64_t chunk_offset,
                                             std::size_t columns) const noexcept {
  return reinterpret_cast<std::uintptr_t>(pool_.base()) + chunk_offset + header_bytes(columns);
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
  const std::span cells(reinterpret_cast<const columns::CellLayout*>(&header + 1), columns);
  Result<columns::RowLayout> layout = columns::RowLayout::from_pool(cells, header.row_bytes);
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
  const std::uint64_t words[] = {table_id_, index, offset, layout.row_bytes()};
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
  Result<columns::RowLayout> layout = columns::RowLayout::from_pool(cells, header.row_bytes);
  FLUGS_CHECK(layout.ok());  // `make` has just written it
  return *std::move(layout);
}

}  // namespace flugs::engine
