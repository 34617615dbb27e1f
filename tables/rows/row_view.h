#pragma once

#include <cstdint>
#include <string_view>

#include "columns/cells/row_layout.h"
#include "columns/column/column.h"
#include "flugs/transaction.h"
#include "flugs/value.h"
#include "tables/rows/row_group.h"

namespace flugs::engine {

/// Where the cells of a row are: side by side in a chunk, or each in its column of a row group.
/// `i` is the position of `column` in the table.
struct RowView {
  const columns::RowLayout* layout = nullptr;  ///< null: in a group
  const std::byte* cells = nullptr;
  const RowGroup* group = nullptr;
  std::uint32_t place = 0;

  static RowView of(const Row& row) noexcept {
    if (__builtin_expect(row.layout_ != nullptr, 1)) return {row.layout_, row.cells_, nullptr, 0};
    return {nullptr, nullptr, reinterpret_cast<const RowGroup*>(row.cells_), row.place_};
  }
  /// Makes a row handle lead here.
  void put_into(Row& row) const noexcept {
    row.layout_ = layout;
    row.cells_ = layout != nullptr ? cells : reinterpret_cast<const std::byte*>(group);
    row.place_ = place;
  }

  bool is_in_group() const noexcept { return __builtin_expect(layout == nullptr, 0); }

  /// The edition of the column that the value belongs to (columns::Column::edition).
  std::uint16_t edition(std::size_t i) const noexcept {
    return is_in_group() ? group->edition(i) : layout->edition(i);
  }
  Value value(const columns::Column& column, std::size_t i) const noexcept {
    return is_in_group() ? group->value(place, i) : column.value(*layout, cells, i);
  }
  bool is_null(const columns::Column& column, std::size_t i) const noexcept {
    return is_in_group() ? group->column(i).is_null(place) : column.is_null(*layout, cells, i);
  }
  /// Payload of a fixed-width column; 0 for NULL.
  std::int64_t integer(const columns::Column& column, std::size_t i) const noexcept {
    return is_in_group() ? group->column(i).integer(place) : column.integer(*layout, cells, i);
  }
  /// Text of a string or bytes column; empty for NULL.
  std::string_view text(const columns::Column& column, std::size_t i) const noexcept {
    return is_in_group() ? group->column(i).text(place) : column.text(*layout, cells, i);
  }
  /// Whether the row's text is in the heap of the edition of its column, so that another row of the
  /// edition can have it, too.
  bool has_text_of_edition(std::size_t i) const noexcept {
    return !is_in_group() || !group->column(i).owns_texts();
  }
  /// Whether the value equals a checked, normalised one (NULL equals NULL).
  bool equals(const columns::Column& column, std::size_t i, const Value& value) const noexcept {
    if (!is_in_group()) return column.equals(*layout, cells, i, value);
    const columns::MainColumn& main = group->column(i);
    const bool null = main.is_null(place);
    if (null || value.is_null()) return null && value.is_null();
    return column.is_text() ? main.text(place) == value.as_string()
                            : main.integer(place) == value.raw();
  }
};

}  // namespace flugs::engine
