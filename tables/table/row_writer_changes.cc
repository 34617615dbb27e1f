// Updating rows: changed values become cells, and widths are found for the new version.

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "tables/table/row_writer.h"

namespace flugs::engine {

Status RowWriter::encode_changes(const columns::RowLayout& layout,
                                 std::span<const ColumnValue> changes) {
  const std::size_t count = data_.columns.size();
  context_.scratch.bits.assign(layout.cell_bits().begin(), layout.cell_bits().end());
  context_.scratch.bits.resize(count);
  if (data_.constraints.any_of(RowConstraints::kAltered)) need_altered(layout);
  context_.scratch.cells.resize(changes.size());
  context_.scratch.editions = layout.editions();
  columns::Cell* next_cell = context_.scratch.cells.data();
  std::uint8_t* const widths = context_.scratch.bits.data();
  for (const ColumnValue& change : changes) {
    const std::size_t i = change.column.value();
    FLUGS_DCHECK(i < count);
    columns::Column& column = *data_.columns[i];
    if (__builtin_expect(column.edition() != layout.edition(i), 0)) return changed_meanwhile();
    columns::Cell& made = *next_cell++;
    std::uint8_t bits = 0;
    if (!column.encode_at_once(change.value, made, bits)) {
      Result<columns::Cell> cell = column.encode(columns::normalised(change.value, column.type()),
                                                 context_.unflushed, context_.slot->persister());
      if (!cell.ok()) return no_cell(std::move(cell).status());
      if (__builtin_expect(column.is_long_text(*cell), 0)) note_written(i, column, *cell);
      made = *cell;
      bits = column.bits_for(made);
    }
    widths[i] = std::max(widths[i], bits);
  }
  return {};
}

// The widths that a new version needs beyond those of its row's cells.
void RowWriter::need_altered(const columns::RowLayout& layout) const {
  for (std::size_t i = 0; i < context_.scratch.bits.size(); ++i) {
    if (data_.columns[i]->is_dropped())
      context_.scratch.bits[i] = 0;
    else if (layout.bits(i) == 0)
      context_.scratch.bits[i] = data_.columns[i]->bits_for(data_.columns[i]->constant());
  }
}

// Encodes all cells of the new row: codes of a group or of an earlier edition mean nothing
// elsewhere, and the texts of an earlier edition go when it goes.
Status RowWriter::encode_whole_row(std::uint32_t row, std::span<const ColumnValue> changes) {
  const RowView view = data_.rows.view(row);
  const std::size_t count = data_.columns.size();
  context_.scratch.cells.resize(count);
  context_.scratch.bits.resize(count);
  context_.scratch.editions = 0;
  for (std::size_t i = 0; i < count; ++i) {
    columns::Column& column = *data_.columns[i];
    const auto change = std::find_if(changes.rbegin(), changes.rend(),
                                     [&](const ColumnValue& c) { return c.column.value() == i; });
    const Value value = change == changes.rend()
                            ? view.value(column, i)
                            : columns::normalised(change->value, column.type());
    const bool is_shared = change == changes.rend() && view.edition(i) == column.edition() &&
                           view.has_text_of_edition(i);
    Result<columns::Cell> cell =
        is_shared ? column.encode_stored(value, context_.unflushed, context_.slot->persister())
                  : column.encode(value, context_.unflushed, context_.slot->persister());
    if (!cell.ok()) return no_cell(std::move(cell).status());
    if (!is_shared && column.is_long_text(*cell)) note_written(i, column, *cell);
    context_.scratch.cells[i] = *cell;
    context_.scratch.bits[i] = column.bits_for(*cell);
    context_.scratch.editions += column.mark();
  }
  return {};
}

}  // namespace flugs::engine
