#include "query/table_view.h"

#include "query/delta_segment.h"

namespace flugs::query {

TableView::TableView(const engine::Table& table, const mvcc::Visibility& visibility)
    : table_(table) {
  const std::uint32_t end = table.rows().rows_end();
  for (std::size_t i = 0; i < table.columns().size(); ++i) {
    const columns::Column& column = *table.columns()[i];
    ColumnInfo info{column.name(), {column.type(), table.schema().columns[i].scale}, nullptr};
    if (column.is_dictionary())
      info.domain = std::make_shared<DictionaryDomain>(column.dictionary(), column.type());
    schema_.push_back(std::move(info));
  }
  const std::size_t chunks = table.rows().chunk_count();
  for (std::size_t i = 0; i < chunks; ++i) {
    const engine::RowStore::ChunkView chunk = table.rows().chunk(i, end);
    if (chunk.row_count == 0) continue;
    segments_.push_back(std::make_unique<DeltaSegment>(table, schema_, visibility, chunk));
    row_positions_ += chunk.row_count;
  }
}

}  // namespace flugs::query
