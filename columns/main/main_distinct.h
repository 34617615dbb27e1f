#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "columns/cells/cell.h"
#include "columns/main/main_column_layout.h"
#include "flugs/value.h"

namespace flugs::columns {

/// The distinct values of a column: first in the order in which they occur, with each row's place
/// among them; then sorted, with each row's code.
class DistinctValues {
 public:
  /// The place of a row that is NULL.
  static constexpr std::uint32_t kNull = 0xFFFFFFFFu;

  /// nullopt if there are more than `limit` values. `payloads` are those of the rows; `nulls` has a
  /// byte per row, or is empty.
  static std::optional<DistinctValues> of_integers(std::span<const std::int64_t> payloads,
                                                   std::span<const std::uint8_t> nulls,
                                                   std::uint64_t limit);
  static std::optional<DistinctValues> of_texts(std::span<const Cell> cells, TextMemory memory,
                                                std::uint64_t limit);

  std::size_t count() const noexcept { return entries_.size(); }
  /// Sorts the values and turns places into codes: ranks, or ranks + 1 and 0 for NULL.
  void sort(Type type, TextMemory memory, bool has_nulls);
  /// Payloads in `low`, or text cells; sorted after sort().
  const std::vector<Cell>& entries() const noexcept { return entries_; }
  /// A place per row; a code after sort().
  const std::vector<std::uint32_t>& rows() const noexcept { return rows_; }

 private:
  std::vector<Cell> entries_;
  std::vector<std::uint32_t> rows_;
};

/// Whether both cells have the same text.
bool is_same_text(const Cell& a, const Cell& b, TextMemory memory) noexcept;
std::string_view text_of(const Cell& cell, TextMemory memory) noexcept;
/// The first eight bytes as a number. Different numbers have the order of their texts.
std::uint64_t prefix_of(std::string_view text) noexcept;

}  // namespace flugs::columns
