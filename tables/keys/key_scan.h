#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "columns/cells/row_layout.h"
#include "columns/column/column_array.h"
#include "flugs/function_ref.h"
#include "flugs/schema.h"
#include "flugs/value.h"
#include "tables/catalog/schema_codec.h"
#include "tables/rows/row_store.h"

namespace flugs::engine {

/// Finds rows by the values of a key's first columns without an index. It compares cells as they
/// are in the rows, a word at a time, so that a row costs a nanosecond or two. A row that it finds
/// may have the values; whether it is visible has not been checked.
///
/// Only for rows that were there at opening: no ValueID given since then is theirs.
/// Thread-safety: one thread, in a transaction.
class KeyScan {
 public:
  /// `values` are checked and normalised, and must outlive the object. `like`, unless kNoRow, is a
  /// row with those values.
  KeyScan(const RowStore& rows, const columns::ColumnArray& columns,
          std::span<const std::uint16_t> key_columns, std::span<const Value> values,
          std::uint32_t like = kNoRow);

  /// Calls visit(row) for rows from `first` to `end` - 1, all of one chunk, until it returns false;
  /// then returns false as well.
  bool visit(std::uint32_t first, std::uint32_t end, FunctionRef<bool(std::uint32_t row)> visit);

 private:
  /// A word with cells of a row; text has two.
  struct Place {
    std::uint16_t word = 0;        // in columns: the offset of the part (RowPart)
    std::uint16_t part_bytes = 0;  // 0: the row's words are side by side
    std::uint16_t in_part = 0;     // in columns: where the word, or a short part, begins
    friend bool operator==(const Place&, const Place&) = default;

    std::uint64_t load(const std::byte* row) const noexcept;
  };
  /// A test of one word.
  struct Test {
    Place place;
    std::uint64_t mask = 0;
    std::uint64_t bits = 0;

    bool passes(const std::byte* row) const noexcept {
      return ((place.load(row) ^ bits) & mask) == 0;
    }
  };
  /// The tests for rows of one layout; `is_nowhere`: no such row can have the values.
  struct Tests {
    const columns::RowLayout* layout = nullptr;
    bool is_nowhere = false;
    std::size_t count = 0;
    std::array<Test, 2 * kKeyColumnsMax> all;
  };

  void prepare(const columns::RowLayout& layout);
  static Place place_of(const columns::RowLayout::Access& access) noexcept;
  void add(Place place, std::uint64_t mask, std::uint64_t bits);
  void add_text(const columns::RowLayout::Access& access, std::string_view text);
  std::uint32_t code(std::size_t i, const columns::Column& edition);

  const RowStore& rows_;
  const columns::ColumnArray& columns_;
  std::span<const std::uint16_t> key_columns_;
  std::span<const Value> values_;
  std::uint32_t like_;
  std::array<std::optional<std::uint32_t>, kKeyColumnsMax> codes_;  // of dictionaries; set when
                                                                    // needed
  Tests tests_;
};

}  // namespace flugs::engine
