#include "tables/table/batch_decoding.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/check.h"
#include "tables/rows/row_view.h"

namespace flugs::engine {

void prepare_batch(ScanBatch& batch, const columns::ColumnArray& columns,
                   std::span<const ColumnId> wanted, std::size_t rows) {
  batch.row_id_buffer().resize(rows);
  batch.columns().resize(wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    ScanBatch::Column& out = batch.columns()[i];
    const columns::Column& column = *columns[wanted[i].value()];
    out.type = column.type();
    out.scale = column.scale();
    if (column.is_text()) {
      out.strings.resize(rows);
    } else if (column.type() == Type::kDouble) {
      out.doubles.resize(rows);
    } else {
      out.integers.resize(rows);
    }
    out.nulls.resize(rows);
  }
}

namespace {

void decode_value(ScanBatch::Column& out, std::size_t r, const RowView& row,
                  const columns::Column& column, std::size_t index) {
  const bool null = column.nullable() && row.is_null(column, index);
  out.nulls[r] = null ? 1 : 0;
  out.has_nulls |= null;
  if (column.is_text()) {
    out.strings[r] = null ? std::string_view() : row.text(column, index);
  } else if (column.type() == Type::kDouble) {
    out.doubles[r] = null ? 0 : row.value(column, index).as_double();
  } else {
    out.integers[r] = null ? 0 : row.integer(column, index);
  }
}

}  // namespace

// Column by column: the loop over the rows of one column keeps its dictionary in the caches, and
// fetches other lines kDecodedAhead rows ahead.
void decode_batch(ScanBatch& batch, const columns::ColumnArray& columns,
                  std::span<const ColumnId> wanted, const RowStore& rows) {
  constexpr std::size_t kDecodedAhead = 64;
  FLUGS_DCHECK(batch.columns().size() == wanted.size());
  const std::span<const RowId> ids = batch.row_ids();
  std::array<RowView, kDecodedAhead> views;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const std::size_t index = wanted[i].value();
    const columns::Column& column = *columns[index];
    ScanBatch::Column& out = batch.columns()[i];
    out.has_nulls = false;
    for (std::size_t first = 0; first < ids.size(); first += kDecodedAhead) {
      const std::size_t count = std::min(kDecodedAhead, ids.size() - first);
      for (std::size_t k = 0; k < count; ++k) {
        views[k] = rows.view(ids[first + k].value());
        if (!views[k].is_in_group()) column.prefetch(*views[k].layout, views[k].cells, index);
      }
      for (std::size_t k = 0; k < count; ++k) decode_value(out, first + k, views[k], column, index);
    }
  }
}

}  // namespace flugs::engine
