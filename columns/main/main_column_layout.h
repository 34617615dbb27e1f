#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "flugs/value.h"

namespace flugs::columns {

/// How a row group stores one column. The numeric values are part of the pool format.
enum class MainEncoding : std::uint8_t {
  kConstant = 1,    ///< every row has the value `min`, or every row is NULL
  kPacked = 2,      ///< frame of reference: value = base + code, codes bit-packed
  kDictionary = 3,  ///< value = entry[code], entries sorted, codes bit-packed
  kRunLength = 4,   ///< one code per run of equal rows; value from base, or from entries if any
  kPlain = 5,       ///< 64-bit payloads in an order-preserving form, or text cells
  kCompressed = 6,  ///< texts as codes of symbols (TextSymbols), each for itself
};

/// In the pool: one column of a row group. Immutable; its parts are in the same extent, one behind
/// the other from `parts_offset` on, in this order, each padded with zeros to 64 bytes:
///   entries      entry_count payloads of 8 bytes, or text cells of 16, in ascending order
///   run ends     run_count words of 32 bits: the row behind the run
///   run starts   per 1024 rows a word of 32 bits: the run that the first of them is in
///   codes        ceil(n / 64) blocks of 64 codes, LSB first, 8 * code_bits bytes each, then at
///                least 64 bytes of zeros; n is row_count, or run_count with run-length encoding.
///                Doubles that are plain are as ordered_double makes them; NULL is 0
///   cells        plain text only: row_count cells of 16 bytes; the tag of NULL is kNullTag
///   NULL bits    plain 64-bit payloads with NULLs only: a bit per row, 1 is NULL
///   symbols      compressed texts only: symbol_count words of 8 bytes, then their lengths in bytes
///   starts       compressed texts only: per 64 rows a word of 64 bits: where in the texts theirs
///                begin
///   texts        compressed texts only: text_bytes bytes, the rows' texts one behind the other
/// The codes of compressed texts are 0 for NULL, else one more than the bytes of the row's text.
/// In a column with codes and NULLs, code 0 is NULL's (and entry 0, which is 0 or empty); codes of
/// values then begin at 1. Codes ascend with the values.
struct MainColumnLayout {
  std::uint8_t type;       ///< flugs::Type
  std::uint8_t encoding;   ///< MainEncoding
  std::uint8_t code_bits;  ///< 0 (constant, plain text), 64 (plain payloads), else is_code_width
  std::uint8_t edition;    ///< edition of the table's column: how often its type had changed
  std::uint32_t row_count;
  std::uint32_t null_count;
  std::uint32_t entry_count;  ///< 0: codes have no entries
  std::uint32_t run_count;
  std::uint32_t symbol_count;  ///< of compressed texts
  std::uint64_t code_count;    ///< all codes are below it; 0: plain, or compressed texts
  std::uint64_t base;    ///< payload - code, wrapping around; 0 if codes have entries, or plain
  std::uint64_t min[2];  ///< payload and 0, or text cell; 0 without values. Compressed texts: a
                         ///< row that has it, and 0
  std::uint64_t max[2];
  std::uint64_t parts_offset;  ///< from the beginning of the group; multiple of 64
  std::uint64_t parts_bytes;   ///< multiple of 64
  std::uint64_t text_bytes;    ///< of compressed texts, as they are stored
  std::uint64_t reserved[2];
  std::uint64_t parts_checksum;  ///< XXH3 of the parts
  std::uint64_t checksum;        ///< XXH3 of the 120 bytes before

  /// Upper byte of the second word of a plain text cell that is NULL; its other bytes are 0.
  static constexpr std::uint8_t kNullTag = 0xFE;
  static constexpr std::uint32_t kRowsPerRunStartLog2 = 10;
  static constexpr std::uint32_t kRowsMax = 1u << 30;
};
static_assert(sizeof(MainColumnLayout) == 128);
static_assert(offsetof(MainColumnLayout, row_count) == 4);
static_assert(offsetof(MainColumnLayout, entry_count) == 12);
static_assert(offsetof(MainColumnLayout, code_count) == 24);
static_assert(offsetof(MainColumnLayout, base) == 32);
static_assert(offsetof(MainColumnLayout, min) == 40);
static_assert(offsetof(MainColumnLayout, max) == 56);
static_assert(offsetof(MainColumnLayout, parts_offset) == 72);
static_assert(offsetof(MainColumnLayout, parts_checksum) == 112);
static_assert(offsetof(MainColumnLayout, checksum) == 120);
static_assert(std::is_trivially_copyable_v<MainColumnLayout> &&
              std::is_standard_layout_v<MainColumnLayout>);

/// Offsets of a column's parts from the beginning of its parts; computed from the layout's counts
/// alone.
struct MainColumnParts {
  std::uint64_t entries = 0;
  std::uint64_t run_ends = 0;
  std::uint64_t run_starts = 0;
  std::uint64_t codes = 0;
  std::uint64_t cells = 0;
  std::uint64_t null_bits = 0;
  std::uint64_t symbols = 0;
  std::uint64_t starts = 0;
  std::uint64_t texts = 0;
  std::uint64_t bytes = 0;  ///< of all parts

  static MainColumnParts of(const MainColumnLayout& layout) noexcept;
};

/// The memory with the bytes of out-of-line text cells: the mapped pool, which may grow.
struct TextMemory {
  static constexpr std::atomic<std::uint64_t> kNone{0};
  static constexpr std::atomic<std::uint64_t> kAll{~std::uint64_t{0}};

  const std::byte* base = nullptr;
  const std::atomic<std::uint64_t>* limit = &kNone;  ///< Medium::bytes_word()

  /// Memory of the process from `base` on; the cells are trusted.
  static TextMemory of_process(const char* base) noexcept {
    return {reinterpret_cast<const std::byte*>(base), &kAll};
  }

  /// A cell must have been read before, see Medium::bytes.
  std::uint64_t bytes() const noexcept { return limit->load(std::memory_order_acquire); }
};

/// Rows of compressed texts whose begin has a word.
inline constexpr std::uint32_t kRowsPerTextStart = 64;

/// Doubles as integers of the same order, NaN last; its own inverse.
constexpr std::int64_t ordered_double(std::int64_t bits) noexcept {
  return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF);
}

}  // namespace flugs::columns
