#include "tables/keys/key_compare.h"

#include "base/check.h"
#include "base/types.h"

#include <bit>
#include <cmath>

namespace flugs::engine {

namespace {

using columns::Column;

template <typename T>
int three_way(T a, T b) noexcept {
  return a < b ? -1 : (b < a ? 1 : 0);
}

int compare_doubles(double a, double b) noexcept {
  const bool a_nan = std::isnan(a);
  const bool b_nan = std::isnan(b);
  return a_nan || b_nan ? (a_nan ? 1 : 0) - (b_nan ? 1 : 0) : three_way(a, b);
}

int compare_payloads(Type type, std::int64_t a, std::int64_t b) noexcept {
  if (type != Type::kDouble) return three_way(a, b);
  return compare_doubles(std::bit_cast<double>(a), std::bit_cast<double>(b));
}

/// The edition of the column that both rows have cells of; null: there is none.
const Column* shared_edition(const Column& column, const RowView& a, const RowView& b,
                             std::size_t i) noexcept {
  if (a.is_in_group() || b.is_in_group() || column.is_dropped()) return nullptr;
  if (__builtin_expect(column.former() == nullptr, 1)) return &column;
  const std::uint16_t edition = a.layout->edition(i);
  return edition == b.layout->edition(i) ? column.at_edition(edition) : nullptr;
}

/// If both rows have the same layout, and so cells of the same editions in the same places: these
/// places. Else null.
const columns::RowLayout::Access* shared_cells(const RowView& a, const RowView& b) noexcept {
  return a.layout == b.layout && a.layout != nullptr ? a.layout->access() : nullptr;
}

/// Whether both rows have the same integer, or ValueID, in a cell of that place, or both have NULL.
bool is_same_word(const columns::RowLayout::Access& cell, const RowView& a,
                  const RowView& b) noexcept {
  using columns::RowLayout;
  const bool is_null = RowLayout::load_null(a.cells, cell);
  if (is_null != RowLayout::load_null(b.cells, cell)) return false;
  return is_null || RowLayout::load(a.cells, cell) == RowLayout::load(b.cells, cell);
}

bool is_null_cell(const RowView& row, std::size_t i) noexcept {
  return row.layout->load_null(row.cells, i);
}

bool is_same_cell(const Column& column, const RowView& a, const RowView& b,
                  std::size_t i) noexcept {
  const Column* edition = shared_edition(column, a, b, i);
  if (edition == nullptr) return compare_values(a.value(column, i), b.value(column, i)) == 0;
  if (edition->is_dictionary()) return a.layout->load(a.cells, i) == b.layout->load(b.cells, i);
  if (edition->nullable() && is_null_cell(a, i) != is_null_cell(b, i)) return false;
  if (edition->is_text())
    return edition->own_text(*a.layout, a.cells, i) == edition->own_text(*b.layout, b.cells, i);
  return edition->own_integer(*a.layout, a.cells, i) == edition->own_integer(*b.layout, b.cells, i);
}

int order_of_codes(const columns::Dictionary& dictionary, const Column& edition, std::uint32_t a,
                   std::uint32_t b) noexcept {
  if (a == b) return 0;
  const std::uint32_t null = dictionary.null_code();
  if (a == null || b == null) return a == null ? -1 : 1;
  if (edition.is_text()) return three_way(dictionary.text(a).compare(dictionary.text(b)), 0);
  return compare_payloads(edition.type(), dictionary.integer(a), dictionary.integer(b));
}

int order_of_cells(const Column& column, const RowView& a, const RowView& b,
                   std::size_t i) noexcept {
  const Column* edition = shared_edition(column, a, b, i);
  if (edition == nullptr) return compare_values(a.value(column, i), b.value(column, i));
  if (edition->is_dictionary())
    return order_of_codes(edition->dictionary(), *edition,
                          static_cast<std::uint32_t>(a.layout->load(a.cells, i)),
                          static_cast<std::uint32_t>(b.layout->load(b.cells, i)));
  if (edition->nullable()) {
    const bool a_null = is_null_cell(a, i);
    const bool b_null = is_null_cell(b, i);
    if (a_null || b_null) return (a_null ? 0 : 1) - (b_null ? 0 : 1);
  }
  if (edition->is_text())
    return three_way(
        edition->own_text(*a.layout, a.cells, i).compare(edition->own_text(*b.layout, b.cells, i)),
        0);
  return compare_payloads(edition->type(), edition->own_integer(*a.layout, a.cells, i),
                          edition->own_integer(*b.layout, b.cells, i));
}

int order_of_value(const Column& column, const RowView& row, std::size_t i,
                   const Value& value) noexcept {
  if (row.is_in_group() || column.is_dropped()) return compare_values(row.value(column, i), value);
  const bool is_null = column.nullable() && row.is_null(column, i);
  if (is_null || value.is_null()) return (is_null ? 0 : 1) - (value.is_null() ? 0 : 1);
  if (column.is_text()) return three_way(row.text(column, i).compare(value.as_string()), 0);
  return compare_payloads(column.type(), row.integer(column, i), value.raw());
}

}  // namespace

int compare_values(const Value& a, const Value& b) noexcept {
  if (a.is_null() || b.is_null()) return (a.is_null() ? 0 : 1) - (b.is_null() ? 0 : 1);

  if (is_text_type(a.type())) return three_way(a.as_string().compare(b.as_string()), 0);
  return compare_payloads(a.type(), a.raw(), b.raw());
}

// Rows that are compared have the same hash, mostly of the first columns, so the last columns are
// likelier to differ.
bool KeyCompare::is_same(const RowView& a, const RowView& b) const noexcept {
  const columns::RowLayout::Access* const cells = shared_cells(a, b);
  for (std::size_t i = key_columns_.size(); i-- > 0;) {
    const std::uint16_t column = key_columns_[i];
    if (cells != nullptr && cells[column].kind != columns::CellKind::kText) {
      if (!is_same_word(cells[column], a, b) && !columns_[column]->is_dropped()) return false;
    } else if (!is_same_cell(*columns_[column], a, b, column)) {
      return false;
    }
  }
  return true;
}

int KeyCompare::order(const RowView& a, const RowView& b) const noexcept {
  const columns::RowLayout::Access* const cells = shared_cells(a, b);
  for (const std::uint16_t column : key_columns_) {
    if (cells != nullptr && cells[column].kind != columns::CellKind::kText &&
        is_same_word(cells[column], a, b))
      continue;
    if (const int order = order_of_cells(*columns_[column], a, b, column); order != 0) return order;
  }
  return 0;
}

int KeyCompare::order(const RowView& row, std::span<const Value> values) const noexcept {
  FLUGS_DCHECK(values.size() <= key_columns_.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t column = key_columns_[i];
    if (const int order = order_of_value(*columns_[column], row, column, values[i]); order != 0)
      return order;
  }
  return 0;
}

}  // namespace flugs::engine
