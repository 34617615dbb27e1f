// What statements tell the transaction of long texts: those that they store, and those that rows
// leave behind (LeftTexts).

#include <algorithm>

#include "base/check.h"
#include "tables/table/row_writer.h"
#include "tables/transactions/left_texts.h"

namespace flugs::engine {

namespace {

LongText long_text(Table& table, std::size_t number, const columns::Column& column,
                   const columns::Cell& cell) noexcept {
  return {&table,
          column.heap_number(),
          0,
          cell.low,
          columns::text_cell::length_of(cell.high),
          static_cast<std::uint16_t>(number)};
}

}  // namespace

void RowWriter::note_written(std::size_t number, const columns::Column& column,
                             const columns::Cell& cell) {
  FLUGS_DCHECK(column.is_long_text(cell));
  context_.dead_rows.texts().add_written(long_text(table_, number, column, cell));
}

// The answer of an encode that has failed. If there was no space, the end of this transaction gives
// back all texts and rows that may be.
Status RowWriter::no_cell(Status failed) noexcept {
  if (failed.code() == StatusCode::kOutOfSpace) context_.dead_rows.set_wants_rows(true);
  return failed;
}

// Texts of a group stay, as other rows of the group may have them. Those of a former edition of the
// column go with it. A constant stays, because its column keeps it.
void RowWriter::note_left(const RowView& view, std::size_t number) {
  FLUGS_DCHECK(!view.is_in_group());
  const columns::RowLayout::Access& cell = view.layout->access()[number];
  if (cell.kind != columns::CellKind::kText || !cell.has_cell()) return;
  const columns::Cell text = view.layout->load_cell(view.cells, number);
  if (columns::text_cell::tag_of(text.high) != columns::text_cell::kOutOfLine) return;
  const columns::Column& column = *data_.columns[number];
  if (column.is_dropped() || view.layout->edition(number) != column.edition()) return;
  if (column.is_long_text(text))
    context_.dead_rows.texts().add_left(long_text(table_, number, column, text));
}

// A column may be named twice.
void RowWriter::note_replaced(std::uint32_t row, std::span<const ColumnValue> changes) {
  const RowView view = data_.rows.view(row);
  if (view.is_in_group() || !view.layout->has_texts()) return;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const ColumnId column = changes[i].column;
    const auto before = changes.first(i);
    if (std::none_of(before.begin(), before.end(),
                     [&](const ColumnValue& change) { return change.column == column; }))
      note_left(view, column.value());
  }
}

void RowWriter::note_removed(const RowView& view) {
  const columns::RowLayout::Access* const cells = view.layout->access();
  for (std::size_t i = 0; i < view.layout->cells().size(); ++i)
    if (cells[i].kind == columns::CellKind::kText) note_left(view, i);
}

}  // namespace flugs::engine
