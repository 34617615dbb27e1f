#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "columns/main/main_column_layout.h"
#include "columns/main/main_kernels.h"
#include "columns/main/text_symbols.h"

namespace flugs::columns {

/// Memory for the texts of some rows. They stay until the scratch is used again. Thread-safety: one
/// thread.
struct TextScratch {
  std::vector<std::span<const std::uint8_t>> codes;
  std::vector<char> bytes;
};

/// The compressed texts of a main column, read in place. A row's code is 0 for NULL, else one more
/// than the bytes of its text as it is compressed. The texts of 64 rows lie behind each other, and
/// a word says where they begin.
/// Thread-safety: any thread.
class CompressedTexts {
 public:
  /// Rows that are read together, if one of them is.
  static constexpr std::uint32_t kRows = 16;
  static_assert(kRowsPerTextStart % kRows == 0);

  /// The codes of kRows rows. Rows behind the last one of the column are empty.
  struct Block {
    std::span<const std::uint8_t> codes;
    std::array<std::uint64_t, kRows> ends;  ///< by row, in `codes`

    std::span<const std::uint8_t> codes_of(std::uint32_t i) const noexcept {
      const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
      return codes.subspan(begin, ends[i] - begin);
    }
  };

  CompressedTexts() = default;
  CompressedTexts(TextSymbolsView symbols, PackedCodes lengths, const std::uint64_t* starts,
                  std::span<const std::uint8_t> codes, std::uint32_t row_count) noexcept
      : symbols_(symbols), lengths_(lengths), starts_(starts), codes_(codes), rows_(row_count) {}

  std::uint32_t row_count() const noexcept { return rows_; }
  /// The block that begins with row `first`, a multiple of kRows.
  Block find(std::uint32_t first) const noexcept;
  /// The texts of `count` rows, `row_of(i)` each, which ascend; in `scratch`.
  template <typename RowOf>
  void decode(std::size_t count, const RowOf& row_of, TextScratch& scratch,
              std::string_view* out) const {
    Block block{};
    std::uint32_t number = ~std::uint32_t{0};
    scratch.codes.resize(count);
    std::uint64_t bytes = TextSymbolsView::kSlack;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t row = row_of(i);
      if (row / kRows != number) {
        number = row / kRows;
        block = find(number * kRows);
      }
      scratch.codes[i] = block.codes_of(row % kRows);
      bytes += symbols_.bytes_of(scratch.codes[i]);
    }
    if (scratch.bytes.size() < bytes) scratch.bytes.resize(2 * bytes);
    char* to = scratch.bytes.data();
    for (std::size_t i = 0; i < count; ++i) {
      char* const end = symbols_.decode(scratch.codes[i], to);
      out[i] = {to, static_cast<std::size_t>(end - to)};
      to = end;
    }
  }
  std::span<const std::uint8_t> all_codes() const noexcept { return codes_; }
  const TextSymbolsView& symbols() const noexcept { return symbols_; }
  std::uint64_t start(std::size_t i) const noexcept { return starts_[i]; }
  std::uint64_t stored_length(std::uint32_t row) const noexcept { return lengths_[row]; }

 private:
  TextSymbolsView symbols_;
  PackedCodes lengths_;
  const std::uint64_t* starts_ = nullptr;
  std::span<const std::uint8_t> codes_;
  std::uint32_t rows_ = 0;
};

/// Reads compressed texts one after the other into memory of its own: a text stays until one of
/// another block of kRows rows is read.
/// Thread-safety: one thread.
class CompressedTextReader {
 public:
  explicit CompressedTextReader(const CompressedTexts& texts) noexcept : texts_(texts) {}

  /// Empty for NULL. Fails with std::bad_alloc.
  std::string_view text(std::uint32_t row);

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  const CompressedTexts& texts_;
  std::uint32_t block_ = kNone;
  std::vector<char> bytes_;
  std::array<std::size_t, CompressedTexts::kRows + 1> begins_{};
};

}  // namespace flugs::columns
