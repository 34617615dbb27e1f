#include "columns/main/main_records.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"

namespace flugs::columns {
namespace {

constexpr std::uint32_t kWindowBits = 64;
constexpr std::uint32_t kBatchRows = 512;
constexpr std::uint32_t kCellBytes = 16;

bool has_cells(const MainColumnLayout& layout) noexcept {
  return static_cast<MainEncoding>(layout.encoding) == MainEncoding::kPlain &&
         is_text_type(static_cast<Type>(layout.type));
}

bool is_compressed(const MainColumnLayout& layout) noexcept {
  return static_cast<MainEncoding>(layout.encoding) == MainEncoding::kCompressed;
}

// Whether plain payloads are stored as the column's values.
bool is_as_stored(const MainColumn& column) noexcept {
  return column.type() != Type::kDouble && !column.has_nulls();
}

std::uint64_t load_codes(const std::byte* at) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

MainDecoder MainDecoder::of(const MainColumn& column, std::uint32_t first_bit) noexcept {
  FLUGS_CHECK(first_bit / 8 <= 0xFFFF);
  MainDecoder made;
  made.type = column.type();
  if (column.owns_texts()) return made;
  made.has_nulls = column.has_nulls();
  made.byte = static_cast<std::uint16_t>(first_bit / 8);
  made.shift = static_cast<std::uint8_t>(first_bit % 8);
  made.mask = column.code_mask();
  made.last_code = column.code_count() - 1;  // plain payloads have no last one
  if (column.cells() != nullptr) {
    made.kind = Kind::kCell;
  } else if (column.has_entries()) {
    made.kind = column.is_text() ? Kind::kText : Kind::kEntry;
    made.entries = column.domain().entries();
  } else if (!column.is_text() && (column.code_count() != 0 || is_as_stored(column))) {
    made.kind = Kind::kNumber;
    made.base = column.domain().base();
  }
  return made;
}

MainRecords::MainRecords(std::span<const MainColumnLayout> columns)
    : bits_(columns.size(), kNoField) {
  std::uint32_t end = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (is_compressed(columns[i])) continue;
    const bool is_cell = has_cells(columns[i]);
    const std::uint32_t bits = is_cell ? kCellBytes * 8 : columns[i].code_bits;
    if (bits == 0) continue;
    if (end % 8 + bits > kWindowBits) end = (end + 7) / 8 * 8;
    bits_[i] = end;
    end += bits;
    ++field_count_;
  }
  stride_ = (end + kWindowBits - 1) / kWindowBits * 8;
}

std::uint64_t MainRecords::bytes(std::uint32_t rows) const noexcept {
  return (std::uint64_t{rows} * stride_ + 8 + 63) / 64 * 64;
}

template <typename Rows>
void MainRecords::for_codes(const MainColumn& column, const Rows& rows) {
  std::array<std::int64_t, kBatchRows> codes;
  for (std::uint32_t first = 0; first < column.row_count();) {
    const std::uint32_t count = std::min(kBatchRows, column.row_count() - first);
    column.stored_plus(first, count, 0, codes.data());
    if (!rows(first, std::span<const std::int64_t>(codes.data(), count))) return;
    first += count;
  }
}

void MainRecords::write(std::size_t column, const MainColumn& from, std::byte* records) const {
  FLUGS_CHECK(has_field(column));
  std::byte* at = records + bits_[column] / 8;
  if (const std::byte* cells = from.cells(); cells != nullptr) {
    for (std::uint32_t row = 0; row < from.row_count(); ++row, at += stride_)
      std::memcpy(at, cells + std::size_t{row} * kCellBytes, kCellBytes);
    return;
  }
  const unsigned shift = bits_[column] % 8;
  for_codes(from, [&](std::uint32_t, std::span<const std::int64_t> codes) {
    for (const std::int64_t code : codes) {
      const std::uint64_t word = load_codes(at) | (static_cast<std::uint64_t>(code) << shift);
      std::memcpy(at, &word, sizeof word);
      at += stride_;
    }
    return true;
  });
}

std::uint32_t MainRecords::first_cell_difference(std::size_t column, const MainColumn& from,
                                                 const std::byte* records) const {
  const std::byte* at = records + bits_[column] / 8;
  for (std::uint32_t row = 0; row < from.row_count(); ++row, at += stride_)
    if (std::memcmp(at, from.cells() + std::size_t{row} * kCellBytes, kCellBytes) != 0) return row;
  return from.row_count();
}

std::uint32_t MainRecords::first_difference(std::size_t column, const MainColumn& from,
                                            const std::byte* records) const {
  FLUGS_CHECK(has_field(column));
  if (from.cells() != nullptr) return first_cell_difference(column, from, records);
  MainColumn by_record = from;
  attach(column, by_record, records);
  std::uint32_t found = from.row_count();
  for_codes(from, [&](std::uint32_t first, std::span<const std::int64_t> codes) {
    for (std::uint32_t i = 0; i < codes.size(); ++i)
      if (by_record.record_field(first + i) != static_cast<std::uint64_t>(codes[i])) {
        found = first + i;
        return false;
      }
    return true;
  });
  return found;
}

void MainRecords::attach(std::size_t column, MainColumn& to,
                         const std::byte* records) const noexcept {
  if (!has_field(column) || to.cells() != nullptr) return;
  to.read_rows_from(records + bits_[column] / 8, stride_, bits_[column] % 8);
}

}  // namespace flugs::columns
