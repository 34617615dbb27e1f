#include "columns/cells/row_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "columns/cells/word_packer.h"

namespace flugs::columns {

namespace {

// 32, 64, or a multiple of 64 bytes, so that a row touches as few lines as possible.
std::uint32_t padded_row_bytes(std::uint32_t bytes) noexcept {
  for (const std::uint32_t size : {32u, 64u})
    if (bytes <= size) return size;
  return (bytes + 63) / 64 * 64;
}

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

Status impossible(std::size_t column, const char* what, std::uint64_t found) {
  return Status(StatusCode::kCorrupt,
                fmt::format("row layout, column {}: {} {}", column, what, found));
}

}  // namespace

Result<RowLayout> RowLayout::make(std::span<const CellNeed> needs, RowShape shape) {
  RowLayout layout;
  layout.shape_ = shape;
  layout.cells_.resize(needs.size());
  for (const CellNeed& need : needs)
    FLUGS_CHECK((need.bits == 0 || is_possible_width(need.kind, need.bits)) &&
                need.edition < kEditionsMax);
  Status placed =
      shape == RowShape::kColumns ? layout.place_in_columns(needs) : layout.place_in_rows(needs);
  if (!placed.ok()) return placed;
  FLUGS_CHECK(layout.row_bytes_ <= kRowBytesMax);
  layout.derive_access();
  return layout;
}

Status RowLayout::too_wide(std::size_t columns) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("a row of {} columns needs more than {} bytes", columns, kRowBytesMax));
}

// Wide cells first: narrow ones fill the rest of their words. NULL bits come last.
std::uint32_t RowLayout::pack(std::span<const CellNeed> needs, std::span<const std::size_t> columns,
                              std::size_t first_word) {
  std::vector<std::size_t> order(columns.begin(), columns.end());
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needs[a].bits > needs[b].bits; });
  WordPacker packer(first_word);
  for (std::size_t i = 0; i < order.size() && packer.bytes() <= kRowBytesMax; ++i) {
    const CellNeed& need = needs[order[i]];
    cells_[order[i]] = {static_cast<std::uint16_t>(packer.place(need.bits)),
                        static_cast<std::uint8_t>(need.kind),
                        need.bits,
                        0,
                        static_cast<std::uint8_t>(need.edition),
                        0};
  }
  for (std::size_t i = 0; i < columns.size() && packer.bytes() <= kRowBytesMax; ++i)
    if (needs[columns[i]].null_bit)
      cells_[columns[i]].null_bit_offset = static_cast<std::uint16_t>(packer.place(1));
  return packer.bytes();
}

Status RowLayout::place_in_rows(std::span<const CellNeed> needs) {
  std::vector<std::size_t> columns;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (needs[i].bits != 0) columns.push_back(i);
  const std::uint32_t bytes = pack(needs, columns, kStampBytes / 8);
  if (bytes > kRowBytesMax) return too_wide(needs.size());
  row_bytes_ = padded_row_bytes(bytes);
  FLUGS_CHECK(row_bytes_ >= bytes);
  return {};
}

Result<RowLayout> RowLayout::from_pool(std::span<const CellLayout> cells, std::uint32_t row_bytes,
                                       RowShape shape) {
  const bool is_size = shape == RowShape::kColumns ? row_bytes % RowBlock::kStampBytes == 0
                                                   : row_bytes == 32 || row_bytes % 64 == 0;
  if (row_bytes < 32 || row_bytes > kRowBytesMax || !is_size)
    return impossible(0, "impossible row size", row_bytes);
  RowLayout layout;
  layout.cells_.assign(cells.begin(), cells.end());
  layout.row_bytes_ = row_bytes;
  layout.shape_ = shape;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (Status s = layout.check_cell(i); !s.ok()) return s;
  if (layout.is_in_columns() && !layout.are_records_inside())
    return impossible(0, "records behind the end of a row of bytes", row_bytes);
  layout.derive_access();
  return layout;
}

bool RowLayout::is_inside_word(const CellLayout& cell) const noexcept {
  const bool straddles =
      cell.bits <= 64 ? cell.bit_offset % 64 + cell.bits > 64 : cell.bit_offset % 64 != 0;
  return !straddles && cell.bit_offset + cell.bits <= row_bytes_ * 8;
}

Status RowLayout::check_cell(std::size_t i) const {
  const CellLayout& cell = cells_[i];
  const auto kind = static_cast<CellKind>(cell.kind);
  if (cell == CellLayout{}) return {};  // its column checks whether it may have none
  if (kind != CellKind::kCode && kind != CellKind::kInteger && kind != CellKind::kText)
    return impossible(i, "unknown kind of cell", cell.kind);
  if (!is_possible_width(kind, cell.bits))
    return impossible(i, "impossible width in bits", cell.bits);
  if (!is_in_columns() && cell.group != 0) return impossible(i, "impossible group", cell.group);
  const bool is_inside = is_in_columns() ? is_inside_part(cell) : is_inside_word(cell);
  if (cell.bit_offset < kStampBytes * 8 || !is_inside)
    return impossible(i, "impossible bit offset", cell.bit_offset);
  if (cell.edition >= kEditionsMax) return impossible(i, "impossible edition", cell.edition);
  if (cell.null_bit_offset != 0 &&
      (cell.null_bit_offset < kStampBytes * 8 || cell.null_bit_offset >= row_bytes_ * 8))
    return impossible(i, "impossible offset of the NULL bit", cell.null_bit_offset);
  return {};
}

RowLayout::RowLayout(const RowLayout& other)
    : cells_(other.cells_),
      cell_bits_(other.cell_bits_),
      access_(other.access_),
      first_access_(access_.data()),
      parts_(other.parts_),
      row_bytes_(other.row_bytes_),
      shape_(other.shape_),
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
  if (is_in_columns()) derive_in_columns();
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

// Word by word, because key probes may read both rows. In pairs: rows have an even number of words.
void RowLayout::copy_cells(const std::byte* source, std::byte* target) const noexcept {
  if (is_in_columns()) {
    copy_parts(source, target);
    return;
  }
  static_assert(kStampBytes % 16 == 0);
  FLUGS_DCHECK(row_bytes_ % 16 == 0);
  for (std::size_t word = kStampBytes / 8; word < row_bytes_ / 8; word += 2) {
    const std::uint64_t first = load_word(source, word);
    const std::uint64_t second = load_word(source, word + 1);
    store_word(target, word, first);
    store_word(target, word + 1, second);
  }
}

}  // namespace flugs::columns
