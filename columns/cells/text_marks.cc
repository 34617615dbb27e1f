#include "columns/cells/text_marks.h"

#include <algorithm>

#include "base/check.h"
#include "columns/cells/free_places.h"

namespace flugs::columns {

namespace {

std::size_t words_for(std::uint64_t bytes, std::uint64_t bytes_per_bit) noexcept {
  return bytes / bytes_per_bit / 64 + 1;
}

bool is_set(const std::vector<std::uint64_t>& bits, std::uint64_t bit) noexcept {
  return (bits[bit / 64] >> (bit % 64) & 1) != 0;
}

}  // namespace

TextMarks::TextMarks(std::vector<Chunk> chunks) : chunks_(std::move(chunks)) {
  std::ranges::sort(chunks_, {}, &Chunk::offset);
  for (Chunk& chunk : chunks_) {
    FLUGS_CHECK(chunk.offset < chunk.begin && chunk.begin <= chunk.end);
    chunk.used.resize(words_for(chunk.end - chunk.offset, text_place::kGrainBytes));
    chunk.kept.resize(words_for(chunk.end - chunk.offset, kBytesPerKeptBit));
    chunk.was_kept.resize(chunk.kept.size());
  }
}

std::size_t TextMarks::chunk_with(std::uint64_t offset) const noexcept {
  const auto behind = std::ranges::upper_bound(chunks_, offset, {}, &Chunk::offset);
  if (behind == chunks_.begin()) return kNone;
  const auto chunk = std::prev(behind);
  const bool is_inside = offset >= chunk->begin && offset < chunk->end;
  return is_inside ? static_cast<std::size_t>(chunk - chunks_.begin()) : kNone;
}

void TextMarks::mark(std::uint64_t offset, std::uint64_t bytes, bool is_shared) noexcept {
  const std::size_t found = chunk_with(offset);
  if (found == kNone) return;
  Chunk& chunk = chunks_[found];
  const std::uint64_t end = std::min(offset + text_place::bytes_for(bytes), chunk.end);
  const std::uint64_t first = (offset - chunk.offset) / text_place::kGrainBytes;
  const std::uint64_t last = (end - chunk.offset - 1) / text_place::kGrainBytes;
  for (std::uint64_t word = first / 64; word <= last / 64; ++word) {
    std::uint64_t bits = ~std::uint64_t{0};
    if (word == first / 64) bits &= ~std::uint64_t{0} << (first % 64);
    if (word == last / 64) bits &= ~std::uint64_t{0} >> (63 - last % 64);
    chunk.used[word] |= bits;
  }
  const std::uint64_t kept = (offset - chunk.offset) / kBytesPerKeptBit;
  if (!is_shared && offset >= chunk.written_from && !is_set(chunk.was_kept, kept)) return;
  chunk.kept[kept / 64] |= std::uint64_t{1} << (kept % 64);
}

void TextMarks::for_each_gap(
    FunctionRef<void(std::uint64_t offset, std::uint64_t bytes)> found) const {
  for (const Chunk& chunk : chunks_) {
    const auto bit_of = [&](std::uint64_t offset) {
      return (offset - chunk.offset) / text_place::kGrainBytes;
    };
    const std::uint64_t end = bit_of(chunk.end);
    for (std::uint64_t bit = bit_of(chunk.begin + text_place::kGrainBytes - 1); bit < end;) {
      std::uint64_t behind = bit;
      while (behind < end && !is_set(chunk.used, behind)) ++behind;
      if (behind > bit)
        found(chunk.offset + bit * text_place::kGrainBytes,
              (behind - bit) * text_place::kGrainBytes);
      bit = behind + 1;
    }
  }
}

}  // namespace flugs::columns
