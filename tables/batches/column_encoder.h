#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "columns/cells/unflushed.h"
#include "columns/column/column.h"
#include "flugs/function_ref.h"
#include "flugs/status.h"
#include "tables/batches/block_column.h"

namespace flugs::engine {

/// The cells of one column in the rows of a block, and the width that the widest of them needs.
struct BlockCells {
  std::uint8_t bits = 0;
  std::array<std::uint64_t, kBlockRows> low;
  std::array<std::uint64_t, kBlockRows> high;  ///< of texts that stand in rows
};

/// Makes cells of the values of one column, block by block. It remembers ValueIDs of values that it
/// has met, by their place in the batch's dictionary or by themselves, so that most rows of a
/// column of few values need no look-up in the index of its dictionary.
///
/// Thread-safety: one thread.
class ColumnEncoder final {
 public:
  struct Call {
    columns::Unflushed& unflushed;
    pmem::Persister& persister;
    /// Called before a long text is stored that would stay if its row were refused. Not ok: the
    /// text is not stored.
    FunctionRef<Status()> before_text;
    /// Called for each long text that has been stored for one row.
    FunctionRef<void(const columns::Column& column, const columns::Cell& cell)> note_text;
  };

  /// `entries`: of the batch's dictionary for this column; 0: none.
  ColumnEncoder(std::size_t entries, std::size_t rows) noexcept
      : entries_(entries <= rows * 4 + kBlockRows ? entries : 0) {}

  /// The first `rows` values become cells. Fails with kOutOfSpace, or as before_text.
  Status encode(columns::Column& column, const BlockColumn& values, std::size_t rows,
                const Call& call, BlockCells& cells);

 private:
  static constexpr std::size_t kRemembered = 1024;
  struct Remembered {
    std::int64_t payload;  // or the address of a text
    std::uint32_t bytes;
    std::uint32_t code;
  };

  void begin_edition(const columns::Column& column);
  std::uint32_t* known(const BlockColumn& values, std::size_t row) noexcept;
  void remember(const BlockColumn& values, std::size_t row, std::uint32_t code) noexcept;
  Status encode_codes(columns::Column& column, const BlockColumn& values, std::size_t rows,
                      const Call& call, BlockCells& cells);
  Status look_up(columns::Column& column, const BlockColumn& values,
                 std::span<const std::uint16_t> rows, const Call& call, BlockCells& cells);

  const columns::Column* of_ = nullptr;  // remembered values are of this column,
  std::uint16_t edition_ = 0;            // and of this edition
  const std::size_t entries_;
  std::uint32_t null_code_ = 0;
  std::vector<std::uint32_t> by_entry_;
  std::vector<Remembered> by_value_;
};

}  // namespace flugs::engine
