#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/main/main_column.h"
#include "columns/main/main_column_layout.h"
#include "flugs/value.h"

namespace flugs::columns {

/// The part of a column that reading a field needs, in 40 bytes. The decoders of all columns of a
/// group lie side by side, so reading a whole row does not visit a MainColumn per value.
struct MainDecoder {
  enum class Kind : std::uint8_t { kNumber, kEntry, kText, kCell, kOther };

  const std::byte* entries = nullptr;
  std::uint64_t base = 0;       ///< kNumber: value of the first code
  std::uint64_t last_code = 0;  ///< a larger code is damage, and is read as this one
  std::uint64_t mask = 0;       ///< 0: no field, the code is 0
  std::uint16_t byte = 0;       ///< byte of the record in which the field begins
  std::uint8_t shift = 0;
  Kind kind = Kind::kOther;  ///< kOther: read through the column
  Type type = Type::kInt64;
  bool has_nulls = false;

  static MainDecoder of(const MainColumn& column, std::uint32_t first_bit) noexcept;
  /// Not for kOther. `record` is the row's record.
  Value decode(const std::byte* record, TextMemory memory) const noexcept {
    FLUGS_DCHECK(kind != Kind::kOther);
    if (kind == Kind::kCell) {
      const std::byte* cell = record + byte;
      if (cell[15] == std::byte{MainColumnLayout::kNullTag}) return Value::null();
      return Value::from_bytes(type, text_cell::view(cell, memory.base, memory.bytes()));
    }
    std::uint64_t window = 0;
    std::memcpy(&window, record + byte, sizeof window);
    const std::uint64_t code = std::min((window >> shift) & mask, last_code);
    if (code == 0 && has_nulls) return Value::null();
    if (kind == Kind::kNumber) return Value::from_raw(type, static_cast<std::int64_t>(base + code));
    if (kind == Kind::kText)
      return Value::from_bytes(type,
                               text_cell::view(entries + code * 16, memory.base, memory.bytes()));
    std::int64_t payload = 0;
    std::memcpy(&payload, entries + code * 8, sizeof payload);
    return Value::from_raw(type, payload);
  }
};
static_assert(sizeof(MainDecoder) == 40);

/// A second copy of the codes and cells of a group, row by row. A reader of one row of a wide table
/// finds them in a cache line or two, instead of one per column. Scans read the columns.
///
/// A record has a field for each column but compressed texts, in the order of the columns. Codes
/// and plain payloads have `code_bits` bits, within the 8 bytes from the byte in which they begin.
/// Plain text cells have 16 whole bytes. The places of the fields follow from the columns' layouts
/// alone. Source: "Fractured Mirrors" (Ramamurthy, DeWitt, Su; VLDB 2002), within a row group.
class MainRecords {
 public:
  /// With fewer fields rows are read from the columns.
  static constexpr std::size_t kFieldsMin = 8;

  explicit MainRecords(std::span<const MainColumnLayout> columns);

  std::size_t field_count() const noexcept { return field_count_; }
  bool has_field(std::size_t column) const noexcept {
    FLUGS_DCHECK(column < bits_.size());
    return bits_[column] != kNoField;
  }
  /// Bytes from one record to the next.
  std::uint32_t stride() const noexcept { return stride_; }
  /// Bytes of the records of `rows` rows, with the bytes read behind the last one; a multiple of
  /// 64.
  std::uint64_t bytes(std::uint32_t rows) const noexcept;

  /// Writes a column's field into all records, where the field must be zero.
  void write(std::size_t column, const MainColumn& from, std::byte* records) const;
  /// The first row whose field differs from the column; row_count() if there is none.
  std::uint32_t first_difference(std::size_t column, const MainColumn& from,
                                 const std::byte* records) const;
  /// Makes a column read single rows from the records.
  void attach(std::size_t column, MainColumn& to, const std::byte* records) const noexcept;
  MainDecoder decoder(std::size_t column, const MainColumn& of) const noexcept {
    return MainDecoder::of(of, has_field(column) ? bits_[column] : 0);
  }

 private:
  static constexpr std::uint32_t kNoField = 0xFFFFFFFFu;

  // Calls `rows(first, codes)` for the column's codes, in portions.
  template <typename Rows>
  static void for_codes(const MainColumn& column, const Rows& rows);
  std::uint32_t first_cell_difference(std::size_t column, const MainColumn& from,
                                      const std::byte* records) const;

  std::vector<std::uint32_t> bits_;  // by column, the bit at which the field begins
  std::size_t field_count_ = 0;
  std::uint32_t stride_ = 0;
};

}  // namespace flugs::columns
