#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "base/hash.h"
#include "base/row_blocks.h"
#include "base/types.h"
#include "columns/cells/cell.h"
#include "flugs/status.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace flugs::columns {

/// The numeric values are part of the pool format.
enum class CellKind : std::uint8_t {
  kNone = 0,     ///< no cell, 0 bits: the column was dropped before the chunk was made
  kCode = 1,     ///< a ValueID, 1 to 32 bits
  kInteger = 2,  ///< the payload of a fixed-width type, 1 or 24 to 64 bits
  kText = 3,     ///< a text cell, 128 bits
};

/// In the pool, in a chunk's header: where a column's cell lies in the chunk's rows.
struct CellLayout {
  std::uint16_t bit_offset;       ///< from the beginning of the row
  std::uint8_t kind;              ///< CellKind
  std::uint8_t bits;              ///< a code has 1 to 32, an integer 1 or 24 to 64, text 128; 0: no
                                  ///< cell
  std::uint16_t null_bit_offset;  ///< 0: none; the bit is 1 when the value is NULL
  std::uint8_t edition;           ///< edition of the cell's column: how often its type had changed
  std::uint8_t group;             ///< cells of one group share a record; 0: the cell is apart
  friend bool operator==(const CellLayout&, const CellLayout&) = default;
};
static_assert(sizeof(CellLayout) == 8);
static_assert(offsetof(CellLayout, kind) == 2 && offsetof(CellLayout, bits) == 3);
static_assert(offsetof(CellLayout, null_bit_offset) == 4 && offsetof(CellLayout, edition) == 6);
static_assert(offsetof(CellLayout, group) == 7);
static_assert(std::is_trivially_copyable_v<CellLayout> && std::is_standard_layout_v<CellLayout>);

/// The cell that a column needs.
struct CellNeed {
  CellKind kind = CellKind::kCode;
  std::uint8_t bits = 1;  ///< 0: no cell
  bool null_bit = false;
  std::uint16_t edition = 0;  ///< of the column for which the cell is
  std::uint8_t group = 0;  ///< in the shape kColumns: cells of one group share a record; 0: apart
};

/// Numbers that a group can have, and 0.
inline constexpr std::size_t kCellGroups = std::size_t{1} << 8 * sizeof(CellLayout::group);

/// The most editions that a column can have: one more than its type can change.
inline constexpr std::uint16_t kEditionsMax = 255;

/// A column's part of the mark of a table's editions. The mark is the sum over all columns; it
/// distinguishes states in which columns have different editions. 0: the first edition.
constexpr std::uint64_t edition_mark(std::size_t column, std::uint16_t edition) noexcept {
  return edition == 0 ? 0 : mix64((std::uint64_t{column} << 16) | edition);
}

/// Where the cells of a chunk's rows lie. The numeric values are part of the pool format.
enum class RowShape : std::uint8_t {
  kRows = 0,     ///< those of a row side by side, behind its stamps
  kColumns = 1,  ///< those of a column, or of a group of them, side by side, in blocks of rows
                 ///< (RowBlock)
};
inline constexpr RowShape kLastRowShape = RowShape::kColumns;

/// The layout of a chunk's rows: 16 bytes of MVCC stamps, then the cells of all columns. In the
/// shape kRows they are side by side: a cell never straddles a word (except for text, which has two
/// words), and a row never straddles a cache line if it fits into one. In the shape kColumns each
/// column has an array in each block of rows. Its cells have 1, 2, 4, 8 or 16 bytes, so that
/// writers of adjacent rows never store to the same byte. Columns of a group have one array of
/// records: a record is words of one row, in which cells lie as they do in the shape kRows. Offsets
/// of cells are those that the row would have if its parts were side by side (RowPart).
///
/// Columns that were added to the table since have no cell in the chunk's rows. All rows have one
/// value for such a column, which reads like a cell (`add_constant`). Cells may be of an earlier
/// edition of their column (decision 0025).
class RowLayout {
 public:
  static constexpr std::size_t kStampBytes = 16;
  static constexpr std::size_t kRowBytesMax = 4096;
  static_assert(kRowBytesMax * 8 <= (1u << 16));  // bit offsets have 16 bits

  /// Fails with kInvalidArgument when a row would be larger than kRowBytesMax.
  static Result<RowLayout> make(std::span<const CellNeed> needs, RowShape shape = RowShape::kRows);
  /// From a chunk's header. Fails with kCorrupt when a cell is impossible.
  static Result<RowLayout> from_pool(std::span<const CellLayout> cells, std::uint32_t row_bytes,
                                     RowShape shape = RowShape::kRows);
  RowLayout(const RowLayout& other);
  RowLayout(RowLayout&& other) noexcept = default;
  RowLayout& operator=(const RowLayout&) = delete;
  RowLayout& operator=(RowLayout&&) noexcept = default;
  ~RowLayout() = default;

  RowShape shape() const noexcept { return shape_; }
  bool is_in_columns() const noexcept { return shape_ == RowShape::kColumns; }
  /// Bytes that each row takes, wherever they lie.
  std::uint32_t row_bytes() const noexcept { return row_bytes_; }
  /// Bytes between a row's address and that of the next row in the same block.
  std::uint32_t stride() const noexcept {
    return is_in_columns() ? static_cast<std::uint32_t>(RowBlock::kStampBytes) : row_bytes_;
  }
  /// In the shape kColumns: the parts of a row besides its stamps, in the order of their offsets.
  std::span<const RowPart> parts() const noexcept { return parts_; }
  /// Starts fetching the first parts of a row.
  void prefetch_parts(const std::byte* row) const noexcept;
  /// Bytes that `rows` rows take: whole blocks in the shape kColumns.
  std::uint64_t bytes_of_rows(std::uint64_t rows) const noexcept {
    if (is_in_columns()) rows = (rows + RowBlock::kRows - 1) / RowBlock::kRows * RowBlock::kRows;
    return rows * row_bytes_;
  }
  /// Where row `i` of a chunk is whose first row is at `first`.
  const std::byte* row_at(const std::byte* first, std::uint64_t i) const noexcept {
    if (!is_in_columns()) return first + i * row_bytes_;
    return first + i / RowBlock::kRows * RowBlock::kRows * row_bytes_ +
           i % RowBlock::kRows * RowBlock::kStampBytes;
  }
  /// Cells of the columns that existed when the chunk was made.
  std::span<const CellLayout> cells() const noexcept { return cells_; }
  /// Number of readable columns: those with cells, and the constants behind them.
  std::size_t column_count() const noexcept { return access_.size(); }
  /// 0: a cell that cannot be written.
  std::uint8_t bits(std::size_t column) const noexcept { return access()[column].bits; }
  /// Whether each cell of the first columns has at least the given width.
  bool has_room(std::span<const std::uint8_t> bits) const noexcept {
    const std::size_t cells = std::min(bits.size(), cell_bits_.size());
    bool has_room = true;
    std::size_t first = 0;
#ifdef __SSE2__
    for (; first + 8 <= cells; first += 8) {
      const auto load = [first](const std::uint8_t* widths) {
        return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(widths + first));
      };
      const __m128i own = load(cell_bits_.data());
      const __m128i is_enough = _mm_cmpeq_epi8(_mm_max_epu8(own, load(bits.data())), own);
      has_room &= (_mm_movemask_epi8(is_enough) & 0xFF) == 0xFF;
    }
#endif
    for (std::size_t i = first; i < cells; ++i) has_room &= cell_bits_[i] >= bits[i];
    for (std::size_t i = cells; i < bits.size(); ++i) has_room &= bits[i] == 0;
    return has_room;
  }
  /// Whether some column has text cells.
  bool has_texts() const noexcept { return has_texts_; }
  /// Widths of the cells of all columns that existed when the chunk was made.
  std::span<const std::uint8_t> cell_bits() const noexcept { return cell_bits_; }
  /// The edition of the column's cells, or of its constant.
  std::uint16_t edition(std::size_t column) const noexcept {
    return column < cells_.size() ? cells_[column].edition : access()[column].null_shift;
  }
  /// The sum of the edition_marks of the columns with cells.
  std::uint64_t editions() const noexcept { return editions_; }
  /// The group of the column's cell; 0: none.
  std::uint8_t group(std::size_t column) const noexcept {
    return column < cells_.size() ? cells_[column].group : 0;
  }
  /// Adds the next column, which has no cell: all rows have `constant`, which must stay in place if
  /// it is text. One thread at a time, while others read; they learn of the column later.
  void add_constant(CellKind kind, const Cell& constant, std::uint16_t edition);
  friend bool operator==(const RowLayout& a, const RowLayout& b) noexcept {
    return a.row_bytes_ == b.row_bytes_ && a.shape_ == b.shape_ && a.cells_ == b.cells_;
  }

  /// The cell's bits, at most 64. Words are read as relaxed atomics, because a key probe may read a
  /// row whose owner is still changing other cells.
  std::uint64_t load(const std::byte* row, std::size_t column) const noexcept {
    return load(row, access()[column]);
  }
  bool load_null(const std::byte* row, std::size_t column) const noexcept {
    return load_null(row, access()[column]);
  }

  /// A cell's place, ready for use; one per column.
  struct Access {
    std::uint64_t mask;      // 0: no cell
    std::uint64_t constant;  // without a cell: its bits, or the address of a text cell; else 0, or
                             // of a cell in a record: a RecordPlace
    std::uint16_t word;      // in the shape kColumns: the offset of the part, or of a record's word
    std::uint16_t null_word;  // 0: none, as word 0 is a stamp; in kColumns: likewise an offset
    std::uint8_t shift;       // in kColumns: kInColumn with kInRecord, or with the logarithm of the
                              // part's bytes
    std::uint8_t null_shift;  // of a constant: the edition of its column
    CellKind kind;
    std::uint8_t bits;

    static constexpr std::uint8_t kInColumn = 0x80;
    static constexpr std::uint8_t kInRecord = 0x40;

    /// The record that holds a cell, and the cell's first bit in its word.
    struct RecordPlace {
      RowPart part;
      std::uint32_t shift;
    };

    bool has_cell() const noexcept { return mask != 0; }
    bool is_in_column() const noexcept { return (shift & kInColumn) != 0; }
    bool is_in_record() const noexcept { return (shift & kInRecord) != 0; }
    unsigned log2_of_bytes() const noexcept {
      FLUGS_DCHECK(is_in_column() && !is_in_record());
      return shift & ~unsigned{kInColumn};
    }
    RecordPlace record() const noexcept {
      FLUGS_DCHECK(is_in_record());
      return std::bit_cast<RecordPlace>(constant);
    }
    /// The part of a row in which the cell is.
    RowPart part() const noexcept {
      if (is_in_record()) return record().part;
      return {word, static_cast<std::uint16_t>(1U << log2_of_bytes())};
    }
    /// Where the row's part is, or the record's word, in the shape kColumns.
    const std::byte* place(const std::byte* row) const noexcept {
      if (is_in_record()) return in_record(row, word);
      return RowPart{word, 0}.array_in(RowBlock::begin_of(row)) +
             (RowBlock::number_of(row) << log2_of_bytes());
    }
    std::byte* place(std::byte* row) const noexcept {
      return const_cast<std::byte*>(place(static_cast<const std::byte*>(row)));
    }
    /// Where the row's NULL bit is, in the shape kColumns: its byte, or the record's word.
    const std::byte* null_place(const std::byte* row) const noexcept {
      if (is_in_record()) return in_record(row, null_word);
      return RowPart{null_word, 1}.in_row(row);
    }

   private:
    const std::byte* in_record(const std::byte* row, std::uint16_t offset) const noexcept {
      const RowPart part = record().part;
      FLUGS_DCHECK(offset >= part.offset && offset < part.offset + part.bytes);
      return part.in_row(row) + (offset - part.offset);
    }
  };
  static_assert(sizeof(Access) == 24);
  /// `null_word` of a constant that is NULL.
  static constexpr std::uint16_t kAlwaysNull = 0xFFFF;
  static_assert(kAlwaysNull > kRowBytesMax / 8);
  static_assert(kEditionsMax <= (1u << 8));  // Access::null_shift holds one
  /// Acquire, because the copy that `add_constant` makes may be newer than all that the reader
  /// knows.
  const Access* access() const noexcept {
    return __atomic_load_n(&first_access_, __ATOMIC_ACQUIRE);
  }
  static std::uint64_t load(const std::byte* row, const Access& a) noexcept {
    if (__builtin_expect(a.is_in_column(), 0)) return load_in_column(row, a);
    return ((load_word(row, a.word) >> a.shift) & a.mask) | a.constant;
  }
  static bool load_null(const std::byte* row, const Access& a) noexcept {
    if (a.null_word == 0) return false;
    if (a.null_word == kAlwaysNull) return true;
    if (__builtin_expect(a.is_in_column(), 0)) return load_null_in_column(row, a);
    return ((load_word(row, a.null_word) >> a.null_shift) & 1) != 0;
  }
  /// Address of a text cell.
  const std::byte* text_cell(const std::byte* row, std::size_t column) const noexcept {
    const Access& a = access()[column];
    if (a.has_cell()) return text_cell(row, a);
    return a.constant != 0 ? reinterpret_cast<const std::byte*>(a.constant) : kEmptyText;
  }
  static const std::byte* text_cell(const std::byte* row, const Access& a) noexcept {
    FLUGS_DCHECK(a.has_cell() && a.kind == CellKind::kText);
    return __builtin_expect(a.is_in_column(), 0) ? a.place(row) : row + std::size_t{a.word} * 8;
  }
  /// The upper word of a text cell.
  static std::uint64_t load_text_high(const std::byte* row, const Access& a) noexcept {
    return load_word(text_cell(row, a), 1);
  }
  CellKind kind(std::size_t column) const noexcept { return access()[column].kind; }

  /// Puts a cell into a row that only the caller writes. Does nothing for a column without a cell.
  void store(std::byte* row, std::size_t column, const Cell& cell) const noexcept {
    store(row, access()[column], cell);
  }
  static void store(std::byte* row, const Access& a, const Cell& cell) noexcept {
    if (!a.has_cell()) return;
    if (__builtin_expect(a.is_in_column(), 0)) return store_in_column(row, a, cell);
    if (a.kind == CellKind::kText) {
      store_word(row, a.word, cell.low);
      store_word(row, a.word + 1u, cell.high);
    } else {
      FLUGS_DCHECK((cell.low & ~a.mask) == 0);
      const std::uint64_t others = load_word(row, a.word) & ~(a.mask << a.shift);
      store_word(row, a.word, others | (cell.low << a.shift));
    }
    if (a.null_word == 0) return;
    const std::uint64_t bit = std::uint64_t{1} << a.null_shift;
    const std::uint64_t others = load_word(row, a.null_word) & ~bit;
    store_word(row, a.null_word, cell.is_null ? others | bit : others);
  }
  Cell load_cell(const std::byte* row, std::size_t column) const noexcept;
  /// Copies the cells of a row of this layout to another row of it that only the caller writes.
  void copy_cells(const std::byte* source, std::byte* target) const noexcept;

 private:
  RowLayout() = default;
  static std::uint64_t load_word(const std::byte* row, std::size_t word) noexcept {
    FLUGS_DCHECK(reinterpret_cast<std::uintptr_t>(row) % 8 == 0);
    return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(row) + word, __ATOMIC_RELAXED);
  }
  static void store_word(std::byte* row, std::size_t word, std::uint64_t value) noexcept {
    FLUGS_DCHECK(word >= kStampBytes / 8);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(row) + word, value, __ATOMIC_RELAXED);
  }
  // For cells in the shape kColumns.
  static std::uint64_t load_in_column(const std::byte* row, const Access& a) noexcept;
  static bool load_null_in_column(const std::byte* row, const Access& a) noexcept;
  static void store_in_column(std::byte* row, const Access& a, const Cell& cell) noexcept;
  static void store_in_record(std::byte* row, const Access& a, const Cell& cell) noexcept;

  static Status too_wide(std::size_t columns);
  /// Gives cells of these columns places in words from `first_word` on. Returns the byte of the row
  /// at which their words end; more than kRowBytesMax: they have no places.
  std::uint32_t pack(std::span<const CellNeed> needs, std::span<const std::size_t> columns,
                     std::size_t first_word);
  Status place_in_rows(std::span<const CellNeed> needs);
  Status place_in_columns(std::span<const CellNeed> needs);
  /// As `pack` for the groups of several cells.
  std::uint32_t place_in_records(std::span<const CellNeed> needs);
  bool is_inside_word(const CellLayout& cell) const noexcept;
  bool is_inside_part(const CellLayout& cell) const noexcept;
  bool are_records_inside() const noexcept;
  Status check_cell(std::size_t column) const;
  void derive_access();
  void derive_in_columns();
  void derive_parts();
  void copy_parts(const std::byte* source, std::byte* target) const noexcept;
  alignas(8) static constexpr std::byte kEmptyText[16] = {};

  std::vector<CellLayout> cells_;
  std::vector<std::uint8_t> cell_bits_;  // of cells_
  std::vector<Access> access_;
  const Access* first_access_ = nullptr;     // of access_, for readers while it grows
  std::vector<std::vector<Access>> former_;  // copies that may still be read
  std::vector<RowPart> parts_;
  std::uint32_t row_bytes_ = 0;
  RowShape shape_ = RowShape::kRows;
  bool has_texts_ = false;
  std::uint64_t editions_ = 0;
};

/// Widths of codes. There are few, because a row with narrower cells cannot take later codes.
inline constexpr unsigned kSmallCodeBits = 16;
/// The narrowest cell for codes 0 to `codes` - 1: 1, 2, 4, 8, 16, 20, 24, 28 or 32 bits.
constexpr std::uint8_t code_bits_for(std::uint64_t codes) noexcept {
  const int least = codes <= 2 ? 1 : std::bit_width(codes - 1);
  if (least > static_cast<int>(kSmallCodeBits))
    return static_cast<std::uint8_t>(std::min((least + 3) / 4 * 4, 32));
  return static_cast<std::uint8_t>(std::bit_ceil(static_cast<unsigned>(least)));
}
static_assert(code_bits_for(0) == 1 && code_bits_for(std::uint64_t{1} << 16) == 16);
static_assert(code_bits_for((std::uint64_t{1} << 16) + 1) == 20);
static_assert(code_bits_for(std::uint64_t{1} << 32) == 32);

/// The narrowest cell for a payload, as unsigned: 24, 32, 40, 48, 56 or 64 bits.
constexpr std::uint8_t integer_bits_for(std::uint64_t payload) noexcept {
  const auto whole_bytes = static_cast<std::uint8_t>((std::bit_width(payload) + 7) / 8 * 8);
  return std::max(whole_bytes, kIntegerCellBitsMin);
}
static_assert(integer_bits_for(0) == 24 && integer_bits_for(~std::uint64_t{0}) == 64);

}  // namespace flugs::columns
