// Rows that are given column by column: from values to rows and entries of keys.

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/hash.h"
#include "tables/table/columns_writer.h"

namespace flugs::engine {

namespace {

// The row is one that only the caller writes.
std::uint64_t* word_of(std::byte* row, std::size_t word) noexcept {
  FLUGS_DCHECK(word >= columns::RowLayout::kStampBytes / 8);
  return reinterpret_cast<std::uint64_t*>(row) + word;
}

void put_word(std::uint64_t* word, std::uint64_t value) noexcept {
  __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

void add_to_word(std::uint64_t* word, std::uint64_t bits) noexcept {
  put_word(word, __atomic_load_n(word, __ATOMIC_RELAXED) | bits);
}

}  // namespace

// The same for many rows. Rows of one range have one layout, so that only the first of them is
// looked at.
Status RowWriter::take_rows(std::span<std::uint32_t> rows) {
  RowRange& range = context_.local_rows.of(table_).range;
  for (std::size_t taken = 0; taken < rows.size();) {
    const Result<std::uint32_t> row = take_row();
    if (!row.ok()) {
      while (taken != 0) give_back(rows[--taken]);
      return row.status();
    }
    rows[taken++] = *row;
    if (*row + 1 != range.next) continue;
    while (taken < rows.size() && range.next != range.end) rows[taken++] = range.next++;
  }
  return {};
}

Status ColumnsWriter::write_block(std::size_t rows) {
  if (Status s = encode(rows); !s.ok()) return s;
  const KeyMask kept = data_.keys.kept();
  if (Status s = store(rows); !s.ok()) return s;
  for (const std::size_t key : KeySet(kept)) hash(key, rows);
  return enter(rows, kept);
}

Status ColumnsWriter::encode(std::size_t rows) {
  const std::size_t count = readers_.size();
  FLUGS_CHECK(count <= data_.columns.size());
  context_.scratch.bits.assign(count, 0);
  context_.scratch.editions = 0;
  for (std::size_t i = 0; i < count; ++i) {
    columns::Column& column = *data_.columns[i];
    const auto before_text = [&] { return check_rest(); };
    const auto note_text = [&](const columns::Column& of, const columns::Cell& cell) {
      writer_.note_written(i, of, cell);
    };
    const ColumnEncoder::Call call{context_.unflushed, context_.slot->persister(), before_text,
                                   note_text};
    if (Status s = encoders_[i].encode(column, values_[i], rows, call, cells_[i]); !s.ok())
      return writer_.no_cell(std::move(s));
    context_.scratch.bits[i] = cells_[i].bits;
    context_.scratch.editions += column.mark();
  }
  return {};
}

// Takes rows that no index names yet, and writes their cells and stamps.
Status ColumnsWriter::store(std::size_t rows) {
  const std::span<std::uint32_t> taken = std::span(block_->rows).first(rows);
  if (Status s = writer_.take_rows(taken); !s.ok()) return s;
  for (std::size_t i = 0; i < rows; ++i) block_->addresses[i] = data_.rows.address(taken[i]);
  for (std::size_t begin = 0; begin < rows;) {
    const columns::RowLayout& layout = data_.rows.layout(taken[begin]);
    std::size_t end = begin + 1;
    while (end < rows && &data_.rows.layout(taken[end]) == &layout) ++end;
    if (!store_run(layout, begin, end)) {
      for (const std::uint32_t row : taken) writer_.give_back(row);
      return writer_.changed_meanwhile();
    }
    begin = end;
  }
  const mvcc::Stamp tag = context_.visibility.own_tag();
  for (std::size_t i = 0; i < rows; ++i) {
    data_.rows.begin_row(taken[i], tag);
    data_.rows.forget_previous(taken[i]);
  }
  return {};
}

// Rows of one layout. False: a column without a constant was added while the rows were prepared.
bool ColumnsWriter::store_run(const columns::RowLayout& layout, std::size_t begin,
                              std::size_t end) {
  const std::size_t words = layout.is_in_columns() ? 0 : layout.row_bytes() / 8;
  for (std::size_t i = begin; i < end; ++i) {
    RowWriter::note_cells(block_->addresses[i], layout);
    for (std::size_t word = columns::RowLayout::kStampBytes / 8; word < words; ++word)
      put_word(word_of(block_->addresses[i], word), 0);
  }
  const std::size_t count = readers_.size();
  for (std::size_t column = 0; column < count; ++column) store_column(layout, column, begin, end);
  for (std::size_t column = count; __builtin_expect(column < layout.cells().size(), 0); ++column) {
    if (!data_.columns[column]->has_constant()) return false;
    // A column dropped meanwhile was never checked for width: its cell is empty.
    const columns::Cell cell =
        data_.is_dropped_column(column) ? columns::Cell{} : data_.columns[column]->constant();
    for (std::size_t i = begin; i < end; ++i) layout.store(block_->addresses[i], column, cell);
  }
  return true;
}

// As RowLayout::store. In rows side by side the words are 0.
void ColumnsWriter::store_column(const columns::RowLayout& layout, std::size_t column,
                                 std::size_t begin, std::size_t end) const noexcept {
  const columns::RowLayout::Access& cell = layout.access()[column];
  if (!cell.has_cell()) return;
  const BlockCells& cells = cells_[column];
  const BlockColumn& values = values_[column];
  if (cell.is_in_column()) {
    const bool has_nulls = values.has_nulls && !now_.columns[column].is_dropped;
    for (std::size_t i = begin; i < end; ++i)
      columns::RowLayout::store(
          block_->addresses[i], cell,
          {cells.low[i], cell.kind == columns::CellKind::kText ? cells.high[i] : 0,
           has_nulls && values.is_null[i] != 0});
    return;
  }
  if (cell.kind == columns::CellKind::kText) {
    for (std::size_t i = begin; i < end; ++i) {
      put_word(word_of(block_->addresses[i], cell.word), cells.low[i]);
      put_word(word_of(block_->addresses[i], cell.word + 1u), cells.high[i]);
    }
  } else {
    for (std::size_t i = begin; i < end; ++i) {
      FLUGS_DCHECK((cells.low[i] & ~cell.mask) == 0);
      add_to_word(word_of(block_->addresses[i], cell.word), cells.low[i] << cell.shift);
    }
  }
  if (cell.null_word == 0 || !values.has_nulls || now_.columns[column].is_dropped) return;
  for (std::size_t i = begin; i < end; ++i)
    add_to_word(word_of(block_->addresses[i], cell.null_word),
                std::uint64_t{values.is_null[i]} << cell.null_shift);
}

// As KeyColumns::hash_of, from the values instead of the rows; and starts fetching the places of
// the hashes in the index.
void ColumnsWriter::hash(std::size_t place, std::size_t rows) noexcept {
  KeyIndex& key = *data_.keys[place];
  if (!key.is_unique()) return;
  std::array<std::uint64_t, kBlockRows>& hashes = block_->hashes[place];
  const std::span<const std::uint16_t> hashed = key.columns().first(key.hashed_columns());
  if (*std::max_element(hashed.begin(), hashed.end()) >= readers_.size()) {
    for (std::size_t i = 0; i < rows; ++i) hashes[i] = key.hash_of(block_->rows[i]);
  } else {
    for (std::size_t at = 0; at < hashed.size(); ++at) {
      const BlockColumn& values = values_[hashed[at]];
      for (std::size_t i = 0; i < rows; ++i) {
        const std::uint64_t part = values.is_null_at(i) ? kHashOfNull
                                   : values.is_text     ? hash_text(values.texts[i])
                                                        : hash_integer(values.payloads[i]);
        hashes[i] = at == 0 ? part : combine_hashes(hashes[i], part);
      }
    }
  }
  for (std::size_t i = 0; i < rows; ++i) key.entries().prefetch_for_edit(hashes[i]);
}

Status ColumnsWriter::enter(std::size_t rows, KeyMask kept) {
  const std::span<const std::uint32_t> taken = std::span(block_->rows).first(rows);
  RowWriter::KeyHashes hashes{};
  for (std::size_t i = 0; i < rows; ++i) {
    for (const std::size_t key : KeySet(kept)) hashes[key] = block_->hashes[key][i];
    if (Status s = writer_.enter_indexes(taken[i], kNoRow, kept, kept, hashes); !s.ok()) {
      writer_.withdraw(taken.subspan(i));
      return at_row(block_->first + i, s);
    }
    writer_.note_inserted(taken[i]);
    if (!ids_.empty()) ids_[block_->first + i] = RowId(taken[i]);
  }
  return {};
}

}  // namespace flugs::engine
