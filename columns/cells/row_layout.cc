#include "columns/cells/row_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

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

/// The bytes of the part that has a cell, in the shape kColumns: 1, 2, 4, 8 or 16.
constexpr std::uint32_t part_bytes(std::uint32_t bits) noexcept {
  return std::bit_ceil((bits + 7) / 8);
}
static_assert(part_bytes(1) == 1 && part_bytes(9) == 2 && part_bytes(24) == 4);
static_assert(part_bytes(56) == 8 && part_bytes(128) == 16);
static_assert(RowLayout::kStampBytes == RowBlock::kStampBytes);

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

template <typename T>
T get_part(const std::byte* place) noexcept {
  return __atomic_load_n(reinterpret_cast<const T*>(place), __ATOMIC_RELAXED);
}

template <typename T>
void put_part(std::byte* place, std::uint64_t value) noexcept {
  __atomic_store_n(reinterpret_cast<T*>(place), static_cast<T>(value), __ATOMIC_RELAXED);
}

Status too_wide(std::size_t columns) {
  return Status(StatusCode::kInvalidArgument,
                fmt::format("a row of {} columns needs more than {} bytes", columns,
                            RowLayout::kRowBytesMax));
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
    FLUGS_CHECK(need.bits == 0 || is_possible_width(need.kind, need.bits));
  Status placed =
      shape == RowShape::kColumns ? layout.place_in_columns(needs) : layout.place_in_rows(needs);
  if (!placed.ok()) return placed;
  FLUGS_CHECK(layout.row_bytes_ <= kRowBytesMax);
  layout.derive_access();
  return layout;
}

Status RowLayout::place_in_rows(std::span<const CellNeed> needs) {
  std::vector<std::size_t> order(needs.size());
  std::iota(order.begin(), order.end(), 0);
  // Wide cells first: narrow ones fill the rest of their words.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return needs[a].bits > needs[b].bits; });
  WordPacker packer;
  for (std::size_t i = 0; i < order.size() && packer.bytes() <= kRowBytesMax; ++i) {
    const CellNeed& need = needs[order[i]];
    if (need.bits == 0) continue;
    cells_[order[i]] = {static_cast<std::uint16_t>(packer.place(need.bits)),
                        static_cast<std::uint8_t>(need.kind), need.bits, 0, need.edition};
  }
  for (std::size_t column = 0; column < needs.size() && packer.bytes() <= kRowBytesMax; ++column)
    if (needs[column].null_bit && needs[column].bits != 0)
      cells_[column].null_bit_offset = static_cast<std::uint16_t>(packer.place(1));
  if (packer.bytes() > kRowBytesMax) return too_wide(needs.size());
  row_bytes_ = padded_row_bytes(packer.bytes() * 8);
  FLUGS_CHECK(row_bytes_ >= packer.bytes());
  return {};
}

// NULL bits of eight columns share a byte, which belongs to one row as each part does.
Status RowLayout::place_in_columns(std::span<const CellNeed> needs) {
  std::uint32_t end = kStampBytes;
  for (std::size_t i = 0; i < needs.size() && end <= kRowBytesMax; ++i) {
    const CellNeed& need = needs[i];
    if (need.bits == 0) continue;
    cells_[i] = {static_cast<std::uint16_t>(end * 8), static_cast<std::uint8_t>(need.kind),
                 need.bits, 0, need.edition};
    end += part_bytes(need.bits);
  }
  const auto has_null_bit = [](const CellNeed& need) { return need.null_bit && need.bits != 0; };
  std::uint32_t null_bit = end * 8;
  end +=
      (static_cast<std::uint32_t>(std::count_if(needs.begin(), needs.end(), has_null_bit)) + 7) / 8;
  if (end > kRowBytesMax) return too_wide(needs.size());
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (has_null_bit(needs[i])) cells_[i].null_bit_offset = static_cast<std::uint16_t>(null_bit++);
  constexpr std::uint32_t kStep = RowBlock::kStampBytes;  // so that the next block is aligned
  row_bytes_ = std::max((end + kStep - 1) / kStep * kStep, 2 * kStep);
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
  layout.derive_access();
  return layout;
}

Status RowLayout::check_cell(std::size_t i) const {
  const CellLayout& cell = cells_[i];
  const auto kind = static_cast<CellKind>(cell.kind);
  if (cell == CellLayout{}) return {};  // its column checks whether it may have none
  if (kind != CellKind::kCode && kind != CellKind::kInteger && kind != CellKind::kText)
    return impossible(i, "unknown kind of cell", cell.kind);
  if (!is_possible_width(kind, cell.bits))
    return impossible(i, "impossible width in bits", cell.bits);
  bool is_inside = cell.bit_offset >= kStampBytes * 8;
  if (is_in_columns()) {
    is_inside &=
        cell.bit_offset % 8 == 0 && cell.bit_offset / 8 + part_bytes(cell.bits) <= row_bytes_;
  } else {
    const bool straddles =
        cell.bits <= 64 ? cell.bit_offset % 64 + cell.bits > 64 : cell.bit_offset % 64 != 0;
    is_inside &= !straddles && cell.bit_offset + cell.bits <= row_bytes_ * 8;
  }
  if (!is_inside) return impossible(i, "impossible bit offset", cell.bit_offset);
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
    if (is_in_columns()) {
      const std::uint32_t bytes = part_bytes(cell.bits);
      a.word = cell.bit_offset / 8;
      a.shift = static_cast<std::uint8_t>(Access::kInColumn | std::countr_zero(bytes));
      a.null_word = cell.null_bit_offset / 8;
      a.null_shift = cell.null_bit_offset % 8;
    }
    if (cell.bits != 0) editions_ += edition_mark(access_.size(), cell.edition);
    has_texts_ |= a.kind == CellKind::kText;
    access_.push_back(a);
    cell_bits_.push_back(cell.bits);
  }
  first_access_ = access_.data();
  if (is_in_columns()) derive_parts();
}

void RowLayout::derive_parts() {
  parts_.clear();
  for (const Access& a : access_) {
    if (!a.has_cell()) continue;
    parts_.push_back(a.part());
    if (a.null_word != 0) parts_.push_back({a.null_word, 1});
  }
  const auto key = [](const RowPart& part) { return std::pair(part.offset, part.bytes); };
  std::sort(parts_.begin(), parts_.end(),
            [&](const RowPart& a, const RowPart& b) { return key(a) < key(b); });
  const auto is_same = [&](const RowPart& a, const RowPart& b) { return key(a) == key(b); };
  parts_.erase(std::unique(parts_.begin(), parts_.end(), is_same), parts_.end());
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

// A part of up to 8 bytes is inside a word, which is read whole: other rows' writers may change
// their bytes of it meanwhile.
std::uint64_t RowLayout::load_in_column(const std::byte* row, const Access& a) noexcept {
  const std::byte* place = a.place(row);
  const std::size_t in_word = reinterpret_cast<std::uintptr_t>(place) % 8;
  return ((load_word(place - in_word, 0) >> in_word * 8) & a.mask) | a.constant;
}

bool RowLayout::load_null_in_column(const std::byte* row, const Access& a) noexcept {
  const auto* byte = reinterpret_cast<const std::uint8_t*>(a.null_place(row));
  return (__atomic_load_n(byte, __ATOMIC_RELAXED) >> a.null_shift & 1) != 0;
}

void RowLayout::store_in_column(std::byte* row, const Access& a, const Cell& cell) noexcept {
  std::byte* const place = a.place(row);
  if (a.kind == CellKind::kText) {
    put_part<std::uint64_t>(place, cell.low);
    put_part<std::uint64_t>(place + 8, cell.high);
  } else {
    FLUGS_DCHECK((cell.low & ~a.mask) == 0);
    switch (a.log2_of_bytes()) {
      case 0:
        put_part<std::uint8_t>(place, cell.low);
        break;
      case 1:
        put_part<std::uint16_t>(place, cell.low);
        break;
      case 2:
        put_part<std::uint32_t>(place, cell.low);
        break;
      default:
        put_part<std::uint64_t>(place, cell.low);
    }
  }
  if (a.null_word == 0) return;
  auto* const byte = const_cast<std::byte*>(a.null_place(row));
  const auto bit = static_cast<std::uint8_t>(1U << a.null_shift);
  const auto others = static_cast<std::uint8_t>(get_part<std::uint8_t>(byte) & ~bit);
  put_part<std::uint8_t>(byte, cell.is_null ? others | bit : others);
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

void RowLayout::copy_parts(const std::byte* source, std::byte* target) const noexcept {
  for (const RowPart& part : parts_) {
    const std::byte* from = part.in_row(source);
    auto* to = const_cast<std::byte*>(part.in_row(target));
    switch (part.bytes) {
      case 1:
        put_part<std::uint8_t>(to, get_part<std::uint8_t>(from));
        break;
      case 2:
        put_part<std::uint16_t>(to, get_part<std::uint16_t>(from));
        break;
      case 4:
        put_part<std::uint32_t>(to, get_part<std::uint32_t>(from));
        break;
      default:
        for (std::size_t at = 0; at < part.bytes; at += 8)
          put_part<std::uint64_t>(to + at, get_part<std::uint64_t>(from + at));
    }
  }
}

}  // namespace flugs::columns
