#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "columns/cells/cell.h"
#include "columns/main/main_column_layout.h"
#include "columns/main/text_symbols.h"

namespace flugs::columns {

/// The texts of a column, compressed for a row group. Thread-safety: one thread.
class TextCompressor {
 public:
  /// Null if the compressed texts take more than `percent_max` per cent of their bytes in cells and
  /// heap; never null without it. Text cells are NULL by `is_null`. Fails with std::bad_alloc.
  static std::unique_ptr<TextCompressor> of(std::span<const Cell> cells, TextMemory memory,
                                            std::optional<std::uint64_t> percent_max = {});

  const TextSymbols& symbols() const noexcept { return symbols_; }
  /// The code of a row: 0 for NULL, else one more than the bytes of its text among `texts`.
  std::uint64_t length(std::size_t row) const noexcept { return lengths_[row]; }
  unsigned length_bits() const noexcept;
  std::span<const std::uint8_t> texts() const noexcept { return texts_; }
  std::uint64_t text_bytes() const noexcept { return texts_.size(); }

 private:
  explicit TextCompressor(TextSymbols symbols) : symbols_(std::move(symbols)) {}

  TextSymbols symbols_;
  std::vector<std::uint64_t> lengths_;
  std::vector<std::uint8_t> texts_;
  std::uint64_t length_max_ = 0;
};

}  // namespace flugs::columns
