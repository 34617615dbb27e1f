#include "columns/main/compressed_texts.h"

#include <algorithm>

namespace flugs::columns {

CompressedTexts::Block CompressedTexts::find(std::uint32_t first) const noexcept {
  FLUGS_DCHECK(first < rows_ && first % kRows == 0);
  std::int64_t lengths[kRowsPerTextStart];
  kernels().values(lengths_, first / kRowsPerTextStart, 1, 0, lengths);
  // Damaged words lead no further than to the end of the codes.
  const auto text_bytes = [&](std::uint32_t i) -> std::uint64_t {
    const auto length = static_cast<std::uint64_t>(lengths[i]);
    return length == 0 ? 0 : length - 1;
  };
  const std::uint64_t all = codes_.size();
  std::uint64_t at = std::min(starts_[first / kRowsPerTextStart], all);
  const std::uint32_t from = first % kRowsPerTextStart;
  for (std::uint32_t i = 0; i < from; ++i) at += std::min(text_bytes(i), all - at);
  Block block;
  const std::uint64_t begin = at;
  const std::uint32_t rows = std::min(kRows, rows_ - first);
  for (std::uint32_t i = 0; i < rows; ++i) {
    at += std::min(text_bytes(from + i), all - at);
    block.ends[i] = at - begin;
  }
  std::fill(block.ends.begin() + rows, block.ends.end(), at - begin);
  block.codes = codes_.subspan(begin, at - begin);
  return block;
}

std::string_view CompressedTextReader::text(std::uint32_t row) {
  constexpr std::uint32_t kRows = CompressedTexts::kRows;
  const std::uint32_t number = row / kRows;
  if (number != block_) {
    block_ = kNone;
    const CompressedTexts::Block block = texts_.find(number * kRows);
    const std::uint64_t most =
        block.codes.size() * TextSymbols::kSymbolBytesMax + TextSymbolsView::kSlack;
    if (bytes_.size() < most) bytes_.resize(std::max<std::size_t>(most, 2 * bytes_.size()));
    char* to = bytes_.data();
    for (std::uint32_t i = 0; i < kRows; ++i) {
      to = texts_.symbols().decode(block.codes_of(i), to);
      begins_[i + 1] = static_cast<std::size_t>(to - bytes_.data());
    }
    block_ = number;
  }
  const std::size_t begin = begins_[row % kRows];
  return {bytes_.data() + begin, begins_[row % kRows + 1] - begin};
}

}  // namespace flugs::columns
