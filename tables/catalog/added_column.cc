// A column that was added to a table: finding it in the pool, and making it.

#include "tables/catalog/added_column.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>

#include "base/check.h"
#include "columns/cells/unflushed.h"
#include "columns/index/hint_index_layout.h"

namespace flugs::engine {

namespace {

constexpr std::uint64_t kHintsOffset = sizeof(AddedColumnLayout) + sizeof(columns::ColumnLayout);
static_assert(kHintsOffset % 64 == 0);
static_assert(sizeof(AddedColumnLayout) % alignof(columns::ColumnLayout) == 0);

std::uint64_t bytes_of(bool has_hints) noexcept {
  return kHintsOffset + (has_hints ? sizeof(columns::HintIndexLayout) : 0);
}

std::uint64_t checksum_of(const AddedColumnLayout& added) noexcept {
  const std::uint64_t sum = XXH3_64bits(&added.magic, 16);
  return XXH3_64bits_withSeed(&added.table_id, sizeof added - offsetof(AddedColumnLayout, table_id),
                              sum);
}

}  // namespace

columns::ColumnLayout& column_layout_of(AddedColumnLayout& added) noexcept {
  return *reinterpret_cast<columns::ColumnLayout*>(&added + 1);
}

columns::HintIndexLayout* hints_of(AddedColumnLayout& added) noexcept {
  if (added.hints_offset == 0) return nullptr;
  return reinterpret_cast<columns::HintIndexLayout*>(reinterpret_cast<std::byte*>(&added) +
                                                     added.hints_offset);
}

columns::Cell constant_of(const AddedColumnLayout& added) noexcept {
  FLUGS_DCHECK(added.constant != AddedColumnLayout::kNone);
  return {added.cell[0], added.cell[1], added.constant == AddedColumnLayout::kNull};
}

pmem::Extent extent_of(pmem::Pool& pool, const AddedColumnLayout& added) noexcept {
  return {pool.offset_of(&added).offset, added.bytes};
}

Result<AddedColumnLayout*> read_added_column(pmem::Pool& pool, std::uint64_t offset,
                                             std::uint32_t table_id, const std::string& table,
                                             std::size_t column, const ColumnSchema& schema) {
  const std::uint64_t pool_bytes = pool.medium().bytes();
  const auto corrupt = [&](const char* what, std::uint64_t expected, std::uint64_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("{}: table {}, column {}: layout at offset {}: {}: expected {}, "
                              "found {}",
                              pool.path(), table, column, offset, what, expected, found));
  };
  if (offset % 64 != 0 || offset == 0 || pool_bytes < kHintsOffset ||
      offset > pool_bytes - kHintsOffset)
    return corrupt("offset aligned to 64 and inside the pool of bytes", pool_bytes, offset);
  auto& added = *pool.at(pmem::OffsetPtr<AddedColumnLayout>{offset});
  if (added.magic != AddedColumnLayout::kMagic)
    return corrupt("magic", AddedColumnLayout::kMagic, added.magic);
  if (added.checksum != checksum_of(added))
    return corrupt("checksum", checksum_of(added), added.checksum);
  if (added.table_id != table_id) return corrupt("table", table_id, added.table_id);
  if (added.column != column) return corrupt("column", column, added.column);
  const bool has_hints = added.hints_offset != 0;
  if (added.bytes > pool_bytes - offset || added.bytes < bytes_of(has_hints) ||
      (has_hints && added.hints_offset != kHintsOffset))
    return corrupt("column inside the extent of bytes", added.bytes, added.hints_offset);
  if (added.constant < AddedColumnLayout::kValue || added.constant > AddedColumnLayout::kNone)
    return corrupt("kind of constant up to", AddedColumnLayout::kNone, added.constant);
  const columns::ColumnLayout& layout = column_layout_of(added);
  if (layout.type != static_cast<std::uint8_t>(schema.type) ||
      layout.encoding != static_cast<std::uint8_t>(schema.encoding))
    return corrupt("column as in the schema, of type", static_cast<std::uint64_t>(schema.type),
                   layout.type);
  if (layout.nullable > 1) return corrupt("whether it may be NULL, up to", 1, layout.nullable);
  if (added.constant == AddedColumnLayout::kNull && layout.nullable == 0 && !schema.dropped)
    return corrupt("a constant that is NOT NULL, of kind", AddedColumnLayout::kValue,
                   added.constant);
  return &added;
}

NewColumn::~NewColumn() {
  if (extent_.bytes == 0) return;
  if (column_ != nullptr) column_->release_all();
  pool_.allocator().release(extent_);
}

Status NewColumn::write_constant(AddedColumnLayout& added, const Value& constant,
                                 columns::Unflushed& unflushed, pmem::Persister& persister) {
  Result<columns::Cell> cell =
      column_->encode(columns::normalised(constant, column_->type()), unflushed, persister);
  unflushed.flush(persister, "add_column/2");
  if (!cell.ok()) return std::move(cell).status();
  added.constant = constant.is_null() ? AddedColumnLayout::kNull : AddedColumnLayout::kValue;
  added.cell[0] = cell->low;
  added.cell[1] = cell->high;
  column_->set_constant(constant_of(added));
  return {};
}

// Protocol add_column. The column is there from step 3 on.
//   step  store                             made durable by     power cut just after it: recovery
//   1     header and layout of the column,  flush, fence of 2   extent unreachable: free space
//         its hint index, which is empty
//   2     what rows have that lack it: an   flush, fence        the same, with all that the column
//         entry of its dictionary, a text                       owns
//   3     the table's schema, which names   alter_table/2       loads the column; rows that were
//         the column                                            there have the constant
// Must hold:  1 and 2 before 3, else the schema would name noise; 3 before any chunk that has
//             cells of the column, else such a chunk has more columns than the table.
// Need not:   anything of the rows that are there: how many there are plays no part.
Status NewColumn::make(std::uint32_t table_id, const std::string& table, std::size_t column,
                       const ColumnSchema& schema, bool has_hints, const Value* constant,
                       columns::Decoder& decoder) {
  FLUGS_CHECK(extent_.bytes == 0);  // one column
  FLUGS_CHECK(column <= 0xFFFF);
  FLUGS_CHECK(schema.encoding != Encoding::kAuto);
  pmem::Persister persister(pool_.medium());
  const bool hinted = has_hints && schema.encoding == Encoding::kDictionary;
  Result<pmem::Extent> extent =
      pool_.allocator().allocate(bytes_of(hinted), persister, pmem::Purpose::kReclaim);
  if (!extent.ok()) {
    persister.fence("add_column/2");  // no flush may stay behind unfenced
    return std::move(extent).status();
  }
  extent_ = *extent;
  auto& added = *pool_.at(pmem::OffsetPtr<AddedColumnLayout>{extent_.offset});
  added.magic = AddedColumnLayout::kMagic;
  added.bytes = extent_.bytes;
  added.table_id = table_id;
  added.column = static_cast<std::uint16_t>(column);
  added.constant = AddedColumnLayout::kNone;
  added.hints_offset = hinted ? kHintsOffset : 0;
  columns::Column::initialise(column_layout_of(added), schema);
  column_ = std::make_unique<columns::Column>(pool_, column_layout_of(added), hints_of(added),
                                              decoder, schema.name, table);
  columns::Unflushed unflushed;
  Status status;
  if (constant != nullptr) status = write_constant(added, *constant, unflushed, persister);
  added.checksum = checksum_of(added);
  persister.flush(&added, bytes_of(hinted), "add_column/1");
  persister.fence("add_column/2");
  unflushed.mark_durable();
  return status;
}

}  // namespace flugs::engine
