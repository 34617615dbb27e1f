#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "columns/cells/chunk_geometry.h"
#include "columns/cells/row_layout.h"
#include "columns/column/column_array.h"
#include "flugs/status.h"
#include "pmem/pool/pool.h"
#include "tables/rows/row_chunk.h"

namespace flugs::engine {

/// The headers of a table's chunks of rows in the pool: writes them, reads them, checks them.
///
/// A header says what the cells of the chunk's rows are like. A chunk whose cells are like those of
/// the chunk before it is loaded without a look at its header: a tag beside the pointer to it says
/// so, and proves that the pointer is not damaged.
///
/// Invariant: `read` trusts nothing that it reads. A layout that it returns fits the columns of the
/// table.
/// Thread-safety: any thread.
class RowChunkHeaders final {
 public:
  /// All are used until the object is gone. Messages call the table `owner`.
  RowChunkHeaders(pmem::Pool& pool, const std::uint32_t& table_id,
                  const columns::ColumnArray& columns, const std::string& owner,
                  const columns::ChunkGeometry& geometry) noexcept
      : pool_(pool), table_id_(table_id), columns_(columns), owner_(owner), geometry_(geometry) {}

  /// With the header.
  std::uint64_t chunk_bytes(std::size_t index, const columns::RowLayout& layout) const noexcept;
  /// Notes in `chunk`, whose `first_row` is known, where the rows of the chunk at `offset` are.
  void lead_to_rows(RowChunk& chunk, std::uint64_t offset,
                    const columns::RowLayout& layout) const noexcept;
  /// The chunk's offset in the pool, from what `lead_to_rows` has noted.
  std::uint64_t offset_of(const RowChunk& chunk) const noexcept;

  /// An empty chunk, its header flushed.
  Result<pmem::Extent> make(std::size_t index, const columns::RowLayout& layout,
                            pmem::Persister& persister);
  /// What `make` has written there.
  columns::RowLayout layout_of_made(std::uint64_t offset) const;
  /// Fails with kCorrupt.
  Result<columns::RowLayout> read(std::size_t index, std::uint64_t offset) const;
  /// The tag of a chunk whose cells are like `layout`, that of the chunk before it. Never 0.
  std::uint16_t tag(std::size_t index, std::uint64_t offset,
                    const columns::RowLayout& layout) const noexcept;
  /// The tag of a chunk without an extent. Never 0.
  std::uint16_t tag_of_nothing(std::size_t index) const noexcept;
  Status corrupt(std::size_t index, std::uint64_t offset, const char* what, std::uint64_t expected,
                 std::uint64_t found) const;

 private:
  pmem::Pool& pool_;
  const std::uint32_t& table_id_;
  const columns::ColumnArray& columns_;
  const std::string& owner_;
  const columns::ChunkGeometry& geometry_;
};

}  // namespace flugs::engine
