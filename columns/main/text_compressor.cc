#include "columns/main/text_compressor.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "columns/main/main_kernels.h"

namespace flugs::columns {

namespace {

constexpr std::uint64_t kBytesPerCell = 16;
/// A table of some hundred symbols takes as much.
constexpr std::uint64_t kTableBytes = 1024;

std::string_view text_in(const Cell& cell, TextMemory memory) noexcept {
  return cell.is_null ? std::string_view() : text_of(cell, memory);
}

/// The bytes that a text takes in a cell, and in the heap if it is long.
std::uint64_t bytes_in_cells(std::string_view text) noexcept {
  return kBytesPerCell + (text.size() > text_cell::kInlineBytesMax ? text.size() : 0);
}

/// Compresses some of the texts, and tells whether they take at most `percent_max` per cent of
/// their bytes in cells and heap.
bool pays(const TextSymbols& symbols, std::span<const std::string_view> texts,
          std::uint64_t percent_max) {
  constexpr std::size_t kTried = 256;
  const std::size_t step = std::max<std::size_t>(texts.size() / kTried, 1);
  std::vector<std::uint8_t> out;
  std::uint64_t compressed = 0;
  std::uint64_t plain = 0;
  for (std::size_t i = 0; i < texts.size(); i += step) {
    out.clear();
    symbols.compress(texts[i], out);
    compressed += out.size() + 1;
    plain += bytes_in_cells(texts[i]);
  }
  return compressed * 100 <= plain * percent_max;
}

}  // namespace

std::unique_ptr<TextCompressor> TextCompressor::of(std::span<const Cell> cells, TextMemory memory,
                                                   std::optional<std::uint64_t> percent_max) {
  std::vector<std::string_view> texts;
  texts.reserve(cells.size());
  std::uint64_t plain_bytes = 0;
  for (const Cell& cell : cells) {
    texts.push_back(text_in(cell, memory));
    plain_bytes += bytes_in_cells(texts.back());
  }
  if (percent_max && plain_bytes * *percent_max < kTableBytes * 100) return nullptr;
  std::unique_ptr<TextCompressor> made(new TextCompressor(TextSymbols::of(texts)));
  if (percent_max && !pays(made->symbols_, texts, *percent_max)) return nullptr;
  made->lengths_.reserve(cells.size());
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::size_t before = made->texts_.size();
    made->symbols_.compress(texts[i], made->texts_);
    const std::uint64_t length = cells[i].is_null ? 0 : made->texts_.size() - before + 1;
    made->lengths_.push_back(length);
    made->length_max_ = std::max(made->length_max_, length);
  }
  const std::uint64_t bytes = TextSymbols::stored_bytes(made->symbols_.count()) +
                              made->texts_.size() + cells.size() / kRowsPerTextStart * 8 +
                              cells.size() * made->length_bits() / 8;
  if (percent_max && bytes * 100 > plain_bytes * *percent_max) return nullptr;
  return made;
}

unsigned TextCompressor::length_bits() const noexcept {
  return rounded_code_width(std::max(static_cast<unsigned>(std::bit_width(length_max_)), 1u));
}

}  // namespace flugs::columns
