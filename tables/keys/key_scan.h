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

/// Finds rows by the values of a key's first columns without an index: cells are compared as they
/// stand in the rows, a word at a time, so that a row costs a nanosecond or two. Rows that are
/// found may have the values; nobody has looked whether they are visible.
///
/// For rows that were there at opening: their values have no ValueIDs above those of then.
/// Thread-safety: one thread, in a transaction.
class KeyScan {
 public:
  /// `values` are checked and normalised, and stay. `like`, if it is a row: has those values.
  KeyScan(const RowStore& rows, const columns::ColumnArray& columns,
          std::span<const std::uint16_t> key_columns, std::span<const Value> values,
          std::uint32_t like = kNoRow);

  /// Calls visit(row) for rows from `first` to `end` - 1, all of one chunk, until it returns false;
  /// then it returns that.
  bool visit(std::uint32_t first, std::uint32_t end, FunctionRef<bool(std::uint32_t row)> visit);

 private:
  /// Of a word of the row; text has two.
  struct Test {
    std::uint16_t word = 0;
    std::uint64_t mask = 0;
    std::uint64_t bits = 0;
  };
  /// What a row of a layout must have; `is_nowhere`: none has it.
  struct Tests {
    const columns::RowLayout* layout = nullptr;
    bool is_nowhere = false;
    std::size_t count = 0;
    std::array<Test, 2 * kKeyColumnsMax> all;
  };

  void prepare(const columns::RowLayout& layout);
  void add(std::uint16_t word, std::uint64_t mask, std::uint64_t bits);
  void add_text(const columns::RowLayout::Access& access, std::string_view text);
  std::uint32_t code(std::size_t i, const columns::Column& edition);

  const RowStore& rows_;
  const columns::ColumnArray& columns_;
  std::span<const std::uint16_t> key_columns_;
  std::span<const Value> values_;
  std::uint32_t like_;
  std::array<std::optional<std::uint32_t>, kKeyColumnsMax> codes_;  // of dictionaries, once asked
  Tests tests_;
};

}  // namespace flugs::engine
