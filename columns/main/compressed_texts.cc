#include "columns/main/compressed_texts.h"

#include <algorithm>

namespace flugs::columns {

std::span<const std::uint8_t> CompressedTexts::find(
    std::uint32_t first, std::array<std::uint64_t, kRows>& ends) const noexcept {
  FLUGS_DCHECK(first < rows_ && first % kRows == 0);
  std::int64_t lengths[kRowsPerStart];
  kernels().values(lengths_, first / kRowsPerStart, 1, 0, lengths);
  // Damaged words lead no further than to the end of the codes.
  const auto text_bytes = [&](std::uint32_t i) -> std::uint64_t {
    const auto length = static_cast<std::uint64_t>(lengths[i]);
    return length == 0 ? 0 : length - 1;
  };
  const std::uint64_t all = codes_.size();
  std::uint64_t at = std::min(starts_[first / kRowsPerStart], all);
  const std::uint32_t from = first % kRowsPerStart;
  for (std::uint32_t i = 0; i < from; ++i) at += std::min(text_bytes(i), all - at);
  const std::uint64_t begin = at;
  const std::uint32_t rows = std::min(kRows, rows_ - first);
  for (std::uint32_t i = 0; i < rows; ++i) {
    at += std::min(text_bytes(from + i), all - at);
    ends[i] = at - begin;
  }
  std::fill(ends.begin() + rows, ends.end(), at - begin);
  return codes_.subspan(begin, at - begin);
}

std::string_view CompressedTextReader::text(std::uint32_t row) {
  constexpr std::uint32_t kRows = CompressedTexts::kRows;
  const std::uint32_t block = row / kRows;
  if (block != block_) {
    block_ = kNone;
    std::array<std::uint64_t, kRows> ends;
    const std::span<const std::uint8_t> codes = texts_.find(block * kRows, ends);
    const std::uint64_t most =
        codes.size() * TextSymbols::kSymbolBytesMax + TextSymbolsView::kSlack;
    if (bytes_.size() < most) bytes_.resize(std::max<std::size_t>(most, 2 * bytes_.size()));
    char* to = bytes_.data();
    std::uint64_t begin = 0;
    for (std::uint32_t i = 0; i < kRows; ++i) {
      to = texts_.symbols().decode(codes.subspan(begin, ends[i] - begin), to);
      begins_[i + 1] = static_cast<std::size_t>(to - bytes_.data());
      begin = ends[i];
    }
    block_ = block;
  }
  const std::size_t begin = begins_[row % kRows];
  return {bytes_.data() + begin, begins_[row % kRows + 1] - begin};
}

}  // namespace flugs::columns
