#include "columns/cells/row_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"

namespace flugs::columns {

namespace {

// 32, 64, or a multiple of 64 bytes, so that a row touches as few lines as possible.
std::uint32_t padded_row_bytes(std::uint32_t bits) noexcept {
  const std::uint32_t bytes = (bits + 7) / 8;
  for (const std::uint32_t size : {32u, 64u})
    if (bytes <= size) return size;
  return (bytes + 63) / 64 * 64;
}

/// Gives bits of a row to cells. No cell of up to 64 bits straddles a word, and few bits are left
/// over: each cell goes to the begun word that it leaves with the fewest bits.
class WordPacker {
 public:
  /// The position of the bits, from the beginning of the row.
  std::uint32_t place(std::uint32_t bits) {
    FLUGS_DCHECK(bits != 0 && (bits <= 64 || bits % 64 == 0));
    if (bits > 64) {
      used_.insert(used_.end(), bits / 64, 64);
      return static_cast<std::uint32_t>((used_.size() - bits / 64) * 64);
    }
    while (first_free_ < used_.size() && used_[first_free_] == 64) ++first_free_;
    std::size_t best = used_.size();
    for (std::size_t word = first_free_; word < used_.size(); ++word)
      if (used_[word] + bits <= 64 && (best == used_.size() || used_[word] > used_[best]))
        best = word;
    if (best == used_.size()) used_.push_back(0);
    const auto at = static_cast<std::uint32_t>(best * 64 + used_[best]);
    used_[best] += bits;
    FLUGS_DCHECK(used_[best] <= 64);
    return at;
  }
  std::uint32_t bytes() const noexcept { return static_cast<std::uint32_t>(used_.size() * 8); }

 private:
  std::vector<std::uint32_t> used_ = {64, 64};  // bits of each word; the stamps take the first two
  std::size_t first_free_ = 0;                  // words before it are full
};
static_assert(RowLayout::kStampBytes == 16);

bool is_possible_width(CellKind kind, std::uint8_t bits) noexcept {
  switch (kind) {
    case CellKind::kCode:
      return bits >= 1 && bits <= 32;
    case CellKind::kInteger:
      return bits == 1 || (bits >= kIntegerCellBitsMin && bits <= 64);
    default:
      return bits == 128;
  }
}

}  // namespace

Result<RowLayout> RowLayout::make(std::span<const CellNeed> needs) {
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0);
  // Wide cells first: narrow ones fill the rest of their words.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needs[a].bits > needs[b].bits; });
  RowLayout layout;
  layout.cells_.resize(needs.size());
  WordPacker packer;
  for (std::size_t i = 0; i < order.size() && packer.bytes() <= kRowBytesMax; ++i) {
    const CellNeed& need = needs[order[i]];
    if (need.bits == 0) continue;
    FLUGS_CHECK(is_possible_width(need.kind, need.bits));
    layout.cells_[order[i]] = {static_cast<std::uint16_t>(packer.place(need.bits)),
                               static_cast<std::uint8_t>(need.kind), need.bits, 0, need.edition};
  }
  for (std::size_t column = 0; column < needs.size() && packer.bytes() <= kRowBytesMax; ++column)
    if (needs[column].null_bit && needs[column].bits != 0)
      layout.cells_[column].null_bit_offset = static_cast<std::uint16_t>(packer.place(1));
  if (packer.bytes() > kRowBytesMax)
    return Status(
        StatusCode::kInvalidArgument,
        fmt::format("a row of {} columns needs more than {} bytes", needs.size(), kRowBytesMax));
  layout.row_bytes_ = padded_row_bytes(packer.bytes() * 8);
  FLUGS_CHECK(layout.row_bytes_ >= packer.bytes() && layout.row_bytes_ <= kRowBytesMax);
  layout.derive_access();
  return layout;
}

Result<RowLayout> RowLayout::from_pool(std::span<const CellLayout> cells, std::uint32_t row_bytes) {
  const auto corrupt = [](std::size_t column, const char* what, std::uint64_t found) {
    return Status(StatusCode::kCorrupt,
                  fmt::format("row layout, column {}: {} {}", column, what, found));
  };
  if (row_bytes < 32 || row_bytes > kRowBytesMax || (row_bytes > 32 && row_bytes % 64 != 0))
    return corrupt(0, "impossible row size", row_bytes);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const CellLayout& cell = cells[i];
    const auto kind = static_cast<CellKind>(cell.kind);
    if (cell == CellLayout{}) continue;  // its column checks whether it may have none
    if (kind != CellKind::kCode && kind != CellKind::kInteger && kind != CellKind::kText)
      return corrupt(i, "unknown kind of cell", cell.kind);
    if (!is_possible_width(kind, cell.bits))
      return corrupt(i, "impossible width in bits", cell.bits);
    const bool straddles =
        cell.bits <= 64 ? cell.bit_offset % 64 + cell.bits > 64 : cell.bit_offset % 64 != 0;
    if (cell.bit_offset < kStampBytes * 8 || straddles ||
        cell.bit_offset + cell.bits > row_bytes * 8)
      return corrupt(i, "impossible bit offset", cell.bit_offset);
    if (cell.edition >= kEditionsMax) return corrupt(i, "impossible edition", cell.edition);
    if (cell.null_bit_offset != 0 &&
        (cell.null_bit_offset < kStampBytes * 8 || cell.null_bit_offset >= row_bytes * 8))
      return corrupt(i, "impossible offset of the NULL bit", cell.null_bit_offset);
  }
  RowLayout layout;
  layout.cells_.assign(cells.begin(), cells.end());
  layout.row_bytes_ = row_bytes;
  layout.derive_access();
  return layout;
}

RowLayout::RowLayout(const RowLayout& other)
    : cells_(other.cells_),
      cell_bits_(other.cell_bits_),
      access_(other.access_),
      first_access_(access_.data()),
      row_bytes_(other.row_bytes_),
      has_texts_(other.has_texts_),
      editions_(other.editions_) {}

void RowLayout::derive_access() {
  access_.clear();
  cell_bits_.clear();
  editions_ = 0;
  has_texts_ = false;
  access_.reserve(cells_.size());
  for (const CellLayout& cell : cells_) {
    Access a{};
    a.mask = cell.bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << cell.bits) - 1;
    a.bits = cell.bits;
    a.word = static_cast<std::uint16_t>(cell.bit_offset / 64);
    a.shift = static_cast<std::uint8_t>(cell.bit_offset % 64);
    a.null_word = static_cast<std::uint16_t>(cell.null_bit_offset / 64);
    a.null_shift = static_cast<std::uint8_t>(cell.null_bit_offset % 64);
    a.kind = static_cast<CellKind>(cell.kind);
    if (cell.bits != 0) editions_ += edition_mark(access_.size(), cell.edition);
    has_texts_ |= a.kind == CellKind::kText;
    access_.push_back(a);
    cell_bits_.push_back(cell.bits);
  }
  first_access_ = access_.data();
}

void RowLayout::add_constant(CellKind kind, const Cell& constant, std::uint16_t edition) {
  Access a{};
  a.kind = kind;
  a.constant = kind == CellKind::kText ? reinterpret_cast<std::uintptr_t>(&constant) : constant.low;
  a.null_word = constant.is_null ? kAlwaysNull : 0;
  a.null_shift = static_cast<std::uint8_t>(edition);
  if (access_.size() < access_.capacity()) {
    access_.push_back(a);
    return;
  }
  std::vector<Access> larger;
  larger.reserve(access_.size() * 2 + 8);
  larger = access_;
  larger.push_back(a);
  former_.push_back(std::move(access_));
  access_ = std::move(larger);
  __atomic_store_n(&first_access_, access_.data(), __ATOMIC_RELEASE);
}

Cell RowLayout::load_cell(const std::byte* row, std::size_t column) const noexcept {
  const Access& a = access()[column];
  Cell cell;
  if (a.kind == CellKind::kText) {
    const std::byte* words = text_cell(row, column);
    cell.low = load_word(words, 0);
    cell.high = load_word(words, 1);
  } else {
    cell.low = load(row, a);
  }
  cell.is_null = load_null(row, a);
  return cell;
}

}  // namespace flugs::columns
