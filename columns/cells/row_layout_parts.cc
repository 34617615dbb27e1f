// The shape kColumns: rows in blocks, an array for each part of a row (RowBlock).
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.h"
#include "columns/cells/row_layout.h"

namespace flugs::columns {

namespace {

static_assert(RowLayout::kStampBytes == RowBlock::kStampBytes);

/// The bytes of the part that has a cell: 1, 2, 4, 8 or 16.
constexpr std::uint32_t part_bytes(std::uint32_t bits) noexcept {
  return std::bit_ceil((bits + 7) / 8);
}
static_assert(part_bytes(1) == 1 && part_bytes(9) == 2 && part_bytes(24) == 4);
static_assert(part_bytes(56) == 8 && part_bytes(128) == 16);

/// The size of a record whose words take `words_bytes`. Padding makes it touch few lines.
constexpr std::uint32_t record_bytes(std::uint32_t words_bytes) noexcept {
  return words_bytes <= 64 ? std::bit_ceil(words_bytes) : (words_bytes + 31) / 32 * 32;
}
static_assert(record_bytes(8) == 8 && record_bytes(24) == 32 && record_bytes(72) == 96);

template <typename T>
T get_part(const std::byte* place) noexcept {
  return __atomic_load_n(reinterpret_cast<const T*>(place), __ATOMIC_RELAXED);
}

template <typename T>
void put_part(std::byte* place, std::uint64_t value) noexcept {
  __atomic_store_n(reinterpret_cast<T*>(place), static_cast<T>(value), __ATOMIC_RELAXED);
}

void put_text(std::byte* place, const Cell& cell) noexcept {
  put_part<std::uint64_t>(place, cell.low);
  put_part<std::uint64_t>(place + 8, cell.high);
}

/// The record of each group, by the words of its cells. One without cells has no bytes.
std::array<RowPart, kCellGroups> records_of(std::span<const CellLayout> cells) noexcept {
  std::array<RowPart, kCellGroups> records{};
  const auto cover = [](RowPart& record, std::uint32_t bit, std::uint32_t words) {
    const auto begin = static_cast<std::uint16_t>(bit / 64 * 8);
    const std::uint32_t end =
        std::max(begin + words * 8u, std::uint32_t{record.offset} + record.bytes);
    record.offset = record.bytes == 0 ? begin : std::min(record.offset, begin);
    record.bytes = static_cast<std::uint16_t>(end - record.offset);
  };
  for (const CellLayout& cell : cells) {
    if (cell.group == 0) continue;
    cover(records[cell.group], cell.bit_offset, cell.bits > 64 ? 2 : 1);
    if (cell.null_bit_offset != 0) cover(records[cell.group], cell.null_bit_offset, 1);
  }
  for (RowPart& record : records)
    if (record.bytes != 0) record.bytes = static_cast<std::uint16_t>(record_bytes(record.bytes));
  return records;
}

}  // namespace

// Records come first, because they consist of words. A group of one cell needs none.
std::uint32_t RowLayout::place_in_records(std::span<const CellNeed> needs) {
  std::array<std::vector<std::size_t>, kCellGroups> members;
  for (std::size_t i = 0; i < needs.size(); ++i)
    if (needs[i].group != 0 && needs[i].bits != 0) members[needs[i].group].push_back(i);
  std::uint32_t end = kStampBytes;
  for (const std::vector<std::size_t>& columns : members) {
    if (columns.size() < 2) continue;
    const std::uint32_t words_end = pack(needs, columns, end / 8);
    if (words_end > kRowBytesMax) return words_end;
    for (const std::size_t i : columns) cells_[i].group = needs[i].group;
    end += record_bytes(words_end - end);
  }
  return end;
}

// NULL bits of eight columns that are apart share a byte, which belongs to one row as each part
// does.
Status RowLayout::place_in_columns(std::span<const CellNeed> needs) {
  std::uint32_t end = place_in_records(needs);
  const auto is_apart = [&](std::size_t i) { return needs[i].bits != 0 && cells_[i].group == 0; };
  for (std::size_t i = 0; i < needs.size() && end <= kRowBytesMax; ++i) {
    if (!is_apart(i)) continue;
    const CellNeed& need = needs[i];
    cells_[i] = {static_cast<std::uint16_t>(end * 8),
                 static_cast<std::uint8_t>(need.kind),
                 need.bits,
                 0,
                 static_cast<std::uint8_t>(need.edition),
                 0};
    end += part_bytes(need.bits);
  }
  std::uint32_t null_bit = end * 8;
  for (std::size_t i = 0; i < needs.size() && null_bit <= kRowBytesMax * 8; ++i)
    if (is_apart(i) && needs[i].null_bit)
      cells_[i].null_bit_offset = static_cast<std::uint16_t>(null_bit++);
  end = (null_bit + 7) / 8;
  if (end > kRowBytesMax) return too_wide(needs.size());
  constexpr std::uint32_t kStep = RowBlock::kStampBytes;  // so that the next block is aligned
  row_bytes_ = std::max((end + kStep - 1) / kStep * kStep, 2 * kStep);
  return {};
}

// Records are of whole words, which a word's cells do not leave; a part is whole bytes.
bool RowLayout::is_inside_part(const CellLayout& cell) const noexcept {
  if (cell.group == 0)
    return cell.bit_offset % 8 == 0 && cell.bit_offset / 8 + part_bytes(cell.bits) <= row_bytes_;
  return is_inside_word(cell);
}

bool RowLayout::are_records_inside() const noexcept {
  const std::array<RowPart, kCellGroups> records = records_of(cells_);
  return std::all_of(records.begin(), records.end(), [&](const RowPart& record) {
    return std::uint32_t{record.offset} + record.bytes <= row_bytes_;
  });
}

void RowLayout::derive_in_columns() {
  const std::array<RowPart, kCellGroups> records = records_of(cells_);
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const CellLayout& cell = cells_[i];
    Access& a = access_[i];
    a.word = cell.bit_offset / 8;
    a.null_word = cell.null_bit_offset / 8;
    a.null_shift = cell.null_bit_offset % 8;
    a.shift =
        static_cast<std::uint8_t>(Access::kInColumn | std::countr_zero(part_bytes(cell.bits)));
    if (cell.group == 0) continue;
    a.word = static_cast<std::uint16_t>(cell.bit_offset / 64 * 8);
    a.null_word = static_cast<std::uint16_t>(cell.null_bit_offset / 64 * 8);
    a.null_shift = cell.null_bit_offset % 64;
    a.shift = Access::kInColumn | Access::kInRecord;
    a.constant = std::bit_cast<std::uint64_t>(
        Access::RecordPlace{records[cell.group], cell.bit_offset % 64u});
  }
  derive_parts();
}

// Records are first. A reader of many parts waits for most of them in any case.
void RowLayout::prefetch_parts(const std::byte* row) const noexcept {
  constexpr std::size_t kParts = 4;
  for (const RowPart& part : std::span(parts_).first(std::min(parts_.size(), kParts))) {
    const std::byte* const at = part.in_row(row);
    __builtin_prefetch(at);
    if (part.bytes > 32) __builtin_prefetch(at + part.bytes - 1);
  }
}

void RowLayout::derive_parts() {
  parts_.clear();
  for (const Access& a : access_) {
    if (!a.has_cell()) continue;
    parts_.push_back(a.part());
    if (a.null_word != 0 && !a.is_in_record()) parts_.push_back({a.null_word, 1});
  }
  const auto key = [](const RowPart& part) { return std::pair(part.offset, part.bytes); };
  std::sort(parts_.begin(), parts_.end(),
            [&](const RowPart& a, const RowPart& b) { return key(a) < key(b); });
  const auto is_same = [&](const RowPart& a, const RowPart& b) { return key(a) == key(b); };
  parts_.erase(std::unique(parts_.begin(), parts_.end(), is_same), parts_.end());
}

// A part of up to 8 bytes is inside a word, which is read whole: other rows' writers may change
// their bytes of it meanwhile.
std::uint64_t RowLayout::load_in_column(const std::byte* row, const Access& a) noexcept {
  const std::byte* place = a.place(row);
  if (a.is_in_record()) return (load_word(place, 0) >> a.record().shift) & a.mask;
  const std::size_t in_word = reinterpret_cast<std::uintptr_t>(place) % 8;
  return (load_word(place - in_word, 0) >> in_word * 8) & a.mask;
}

bool RowLayout::load_null_in_column(const std::byte* row, const Access& a) noexcept {
  const std::byte* const place = a.null_place(row);
  const std::uint64_t bits = a.is_in_record() ? load_word(place, 0) : get_part<std::uint8_t>(place);
  return (bits >> a.null_shift & 1) != 0;
}

// Only the row's writer changes its record.
void RowLayout::store_in_record(std::byte* row, const Access& a, const Cell& cell) noexcept {
  std::byte* const place = a.place(row);
  if (a.kind == CellKind::kText) {
    put_text(place, cell);
  } else {
    FLUGS_DCHECK((cell.low & ~a.mask) == 0);
    const unsigned shift = a.record().shift;
    const std::uint64_t others = load_word(place, 0) & ~(a.mask << shift);
    put_part<std::uint64_t>(place, others | cell.low << shift);
  }
  if (a.null_word == 0) return;
  auto* const null_place = const_cast<std::byte*>(a.null_place(row));
  const std::uint64_t bit = std::uint64_t{1} << a.null_shift;
  const std::uint64_t others = load_word(null_place, 0) & ~bit;
  put_part<std::uint64_t>(null_place, cell.is_null ? others | bit : others);
}

void RowLayout::store_in_column(std::byte* row, const Access& a, const Cell& cell) noexcept {
  if (a.is_in_record()) return store_in_record(row, a, cell);
  std::byte* const place = a.place(row);
  if (a.kind == CellKind::kText) {
    put_text(place, cell);
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
