#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "columns/cells/cell.h"
#include "columns/main/compressed_texts.h"
#include "columns/main/main_column_layout.h"
#include "columns/main/main_domain.h"
#include "columns/main/main_kernels.h"
#include "columns/main/main_runs.h"
#include "columns/main/read_texts.h"
#include "flugs/status.h"
#include "flugs/value.h"

namespace flugs::columns {

/// Values between two bounds; no bound is no limit. Values are of the column's type (or int32 for
/// int64).
struct ValueBounds {
  std::optional<Value> low;
  std::optional<Value> high;
  bool low_excluded = false;
  bool high_excluded = false;

  static ValueBounds equal(const Value& value) { return {value, value, false, false}; }
};

/// The part of a row group for which a predicate holds.
enum class Match : std::uint8_t { kNone, kSome, kAll };

/// A predicate in the terms of one column of one row group: codes, or text bounds for plain text. A
/// MainColumn makes it for itself alone; text bounds must outlive it.
struct MainRange {
  Match match = Match::kNone;
  bool outside = false;    ///< selects rows outside the range that are not NULL
  std::uint64_t low = 0;   ///< first code
  std::uint64_t high = 0;  ///< last code, included; plain: payloads, ordered as signed
  ValueBounds text;        ///< plain or compressed text only
};

/// Sum of payloads, and the number of values; NULLs do not count.
struct MainSum {
  Int128 sum = 0;
  std::uint64_t count = 0;
};
struct MainRealSum {
  double sum = 0;
  std::uint64_t count = 0;
};
/// Both NULL when no row had a value.
struct MainExtremes {
  Value min;
  Value max;
};

/// Rows that have the least and the greatest value of a column, once a query has looked for them.
/// Thread-safety: any thread.
struct ExtremePlaces {
  static constexpr std::uint32_t kUnknown = 0xFFFFFFFFu;
  std::atomic<std::uint32_t> least{kUnknown};
  std::atomic<std::uint32_t> greatest{kUnknown};
};

/// The owner of a column, for messages, and what the column must be.
struct MainColumnOwner {
  std::string_view name;           ///< "<pool>: table t, row group 3, column c"
  std::uint64_t group_offset = 0;  ///< offset of the group in the pool
  Type type = Type::kInt64;        ///< type in the schema
  std::uint32_t row_count = 0;     ///< rows of the group
};

/// One column of a row group, immutable, read in place. Rows are positions in the group, from 0.
///
/// Codes: unless `code_count()` is 0 (plain, or compressed texts), each row has a code in [0,
/// code_count()). Codes of dictionaries are dense. Codes always ascend with the values, and if
/// has_nulls(), code 0 is NULL's. Every returned code is below code_count(), also when the pool is
/// damaged.
///
/// Bit masks: bit i of word i / 64 is row `first + i`. `first` must be a multiple of 64 wherever a
/// mask is taken (checked); bits behind `count` are left as they are. A NULL is in no range.
///
/// Reads are checked only so far that no damage leads a read out of the group or the pool: `check`
/// when opened, and bounds on the way. `audit` finds other damage.
///
/// A handle of pointers, cheap to copy; the group and the pool outlive it.
/// Thread-safety: any thread.
class MainColumn {
 public:
  /// Opening: checks everything that later reads rely on, without reading the parts. `group` is the
  /// extent. Fails with kCorrupt.
  static Status check(const MainColumnLayout& layout, std::span<const std::byte> group,
                      const MainColumnOwner& owner);
  /// Checks everything: check, the parts' checksum, codes, order of entries, runs, NULLs, min and
  /// max, text in the pool. Fails with kCorrupt.
  static Status audit(const MainColumnLayout& layout, std::span<const std::byte> group,
                      const MainColumnOwner& owner, TextMemory memory);

  /// `layout` has passed `check`, and must stay in place. A column of compressed texts needs
  /// `read_texts`, which has begun with its texts.
  MainColumn(const MainColumnLayout& layout, const std::byte* group, TextMemory memory,
             ReadTexts* read_texts = nullptr) noexcept;

  Type type() const noexcept { return domain_.type(); }
  MainEncoding encoding() const noexcept { return encoding_; }
  bool is_text() const noexcept { return is_text_type(type()); }
  /// Bits of a code, of a plain payload, or of the length of a compressed text; 0 without these.
  unsigned code_bits() const noexcept { return code_bits_; }
  std::uint32_t row_count() const noexcept { return row_count_; }
  std::uint32_t null_count() const noexcept { return null_count_; }
  bool has_nulls() const noexcept { return null_count_ != 0; }
  /// Bytes in the pool, without the layout.
  std::uint64_t bytes() const noexcept { return parts_bytes_; }
  /// These bytes; not those of long texts, nor of records.
  std::span<const std::byte> parts() const noexcept { return {parts_, parts_bytes_}; }
  /// The least and the greatest value; NULL when there is none.
  Value min() const noexcept { return bound(layout_->min); }
  Value max() const noexcept { return bound(layout_->max); }
  /// The same of a text column that has values. `memory` holds a compressed text, which then stays
  /// nowhere else.
  std::string_view min_text(std::string& memory) const { return bound_text(layout_->min, memory); }
  std::string_view max_text(std::string& memory) const { return bound_text(layout_->max, memory); }

  // One row, below row_count(). Payload 0, text empty, for NULL.
  bool is_null(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < row_count_);
    if (!has_nulls()) return false;
    return code_count() != 0 ? code(row) == 0 : is_plain_null(row);
  }
  std::int64_t integer(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < row_count_ && !is_text());
    if (code_count() != 0) return entry_integer(code(row));
    const auto payload =
        static_cast<std::int64_t>(records_ != nullptr ? record_field(row) : codes_[row]);
    return type() == Type::kDouble ? ordered_double(payload) : payload;
  }
  std::string_view text(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < row_count_ && is_text());
    return code_count() != 0 ? entry_text(code(row)) : plain_text(row);
  }
  Value value(std::uint32_t row) const noexcept;

  // Codes and their values; only if code_count() is not 0.
  std::uint64_t code_count() const noexcept { return domain_.count(); }
  /// Whether the domain is dense: codes are ranks in the group's values.
  bool has_entries() const noexcept { return domain_.has_entries(); }
  std::uint64_t code(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < row_count_ && code_count() != 0);
    if (records_ != nullptr) return std::min(record_field(row), code_count() - 1);
    return packed_code(row);
  }
  bool entry_is_null(std::uint64_t code) const noexcept { return domain_.is_null(code); }
  std::int64_t entry_integer(std::uint64_t code) const noexcept { return domain_.integer(code); }
  std::string_view entry_text(std::uint64_t code) const noexcept { return domain_.text(code); }
  Value entry_value(std::uint64_t code) const noexcept;
  const MainDomain& domain() const noexcept { return domain_; }
  /// Whether all its texts are in the group, compressed.
  bool owns_texts() const noexcept { return read_texts_ != nullptr; }
  /// The column must own its texts. They stay in place as long as the group.
  const CompressedTexts& compressed_texts() const noexcept {
    FLUGS_DCHECK(owns_texts());
    return read_texts_->compressed();
  }
  /// The texts of a column of this layout; without rows if they are not compressed.
  static CompressedTexts compressed_texts(const MainColumnLayout& layout,
                                          const std::byte* group) noexcept;
  /// Bytes of the texts that are neither in their cells nor in the group; each counts as often as a
  /// cell refers to it.
  std::uint64_t long_text_bytes() const noexcept;
  /// Whether each code has the same value in both columns.
  bool has_codes_of(const MainColumn& other) const noexcept {
    return domain_.is_same_as(other.domain_);
  }
  /// The code of a value, if the value may occur in the group; always if a row has it.
  std::optional<std::uint64_t> code_of(const Value& value) const noexcept;

  /// As `code`, but always from the column's own codes: those of adjacent rows share lines there.
  std::uint64_t packed_code(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(row < row_count_ && code_count() != 0);
    if (!runs_.empty()) row = runs_.of(row);
    return code_bits_ == 0 ? 0 : std::min(packed()[row], code_count() - 1);
  }

  // Chosen rows of a range: `first` + each of `places`, which ascend. For scans: they are read from
  // the column itself, not from the records of rows.
  void integers_at(std::uint32_t first, std::span<const std::uint32_t> places,
                   std::int64_t* out) const;
  /// With a scratch, compressed texts may be there, until it is used again; else they stay as those
  /// of `text`.
  void texts_at(std::uint32_t first, std::span<const std::uint32_t> places, std::string_view* out,
                TextScratch* scratch = nullptr) const;

  // Many rows, from `first` (any) on. first + count <= row_count() (checked).
  /// Codes; code_count() must be from 1 to 2^32.
  void codes(std::uint32_t first, std::uint32_t count, std::uint32_t* out) const;
  /// The stored codes or plain payloads, of any width but none, plus `addend` (modulo 2^64), for
  /// all rows. For NULL the stored value is 0.
  void stored_plus(std::uint32_t first, std::uint32_t count, std::uint64_t addend,
                   std::int64_t* out) const;
  /// Payloads; `nulls`, if given, gets (count + 63) / 64 words, a bit per NULL.
  void integers(std::uint32_t first, std::uint32_t count, std::int64_t* out,
                std::uint64_t* nulls = nullptr) const;
  /// `scratch`: as of texts_at.
  void texts(std::uint32_t first, std::uint32_t count, std::string_view* out,
             std::uint64_t* nulls = nullptr, TextScratch* scratch = nullptr) const;
  void null_bits(std::uint32_t first, std::uint32_t count, std::uint64_t* nulls) const;

  // For decoders of the group's records.
  std::uint64_t code_mask() const noexcept { return code_bits_ == 0 ? 0 : packed().mask(); }
  /// Cells of plain text; else null.
  const std::byte* cells() const noexcept { return cells_; }

  // For kernels and whole blocks of 64 rows.
  PackedCodes packed() const noexcept { return {codes_, code_bits_}; }
  const MainRuns& runs() const noexcept { return runs_; }
  /// Calls `rows(first, count, code)` for the parts of runs in [first, first + count).
  template <typename Rows>
  void for_runs(std::uint32_t first, std::uint32_t count, const Rows& rows) const {
    runs_.for_parts(first, count, [&](std::uint32_t from, std::uint32_t part, std::uint32_t run) {
      rows(from, part, std::min(packed()[run], code_count() - 1));
    });
  }
  /// Payloads; 0 for NULL. Neither for run-length encoding nor for a constant.
  void values_of_blocks(std::size_t first, std::size_t count, std::int64_t* out) const;
  /// A word of NULLs per block; bits behind the last row may be set. Not for run-length encoding.
  void null_words(std::size_t first, std::size_t count, std::uint64_t* out) const;
  /// Plain payloads with NULLs: a word per block; else null.
  const std::uint64_t* plain_null_words() const noexcept { return null_bits_; }

  // The group's records (MainRecords): another place to read single rows from.
  /// From now on `code`, and all that calls it, reads a field of the records. For row 0 the field
  /// begins `shift` bits into `first`, and for each further row `stride` bytes later; 8 bytes are
  /// read there.
  void read_rows_from(const std::byte* first, std::uint32_t stride, unsigned shift) noexcept {
    FLUGS_CHECK(first != nullptr && stride % 8 == 0 && shift < 8);
    records_ = first;
    record_stride_ = stride;
    record_shift_ = static_cast<std::uint8_t>(shift);
  }
  /// The field's content, which may not be a code.
  std::uint64_t record_field(std::uint32_t row) const noexcept {
    FLUGS_DCHECK(records_ != nullptr && row < row_count_);
    std::uint64_t window = 0;
    std::memcpy(&window, records_ + std::size_t{row} * record_stride_, 8);
    return (window >> record_shift_) & packed().mask();
  }

  // Predicates. `match` of the result says whether rows must be read at all.
  MainRange within(const ValueBounds& bounds) const noexcept;
  /// Not NULL and not within: `<>`, `not between`.
  MainRange outside(const ValueBounds& bounds) const noexcept;
  MainRange not_null() const noexcept { return within({}); }

  // Filters clear the bits of rows that do not match; rows whose bits are clear already may be
  // skipped.
  void filter(std::uint32_t first, std::uint32_t count, const MainRange& range,
              std::uint64_t* mask) const;
  /// Keeps rows whose code has its bit in `wanted`, which has (code_count() + 63) / 64 words;
  /// code_count() must be from 1 to 2^32.
  void filter_codes(std::uint32_t first, std::uint32_t count, const std::uint64_t* wanted,
                    std::uint64_t* mask) const;
  void filter_is_null(std::uint32_t first, std::uint32_t count, std::uint64_t* mask) const;
  /// The first row with the value, among rows of the group whose bits are set.
  std::optional<std::uint32_t> find(const Value& value, const std::uint64_t* mask) const;

  // Aggregates over the rows whose bits are set, or all without a mask.
  /// Not for text. For a double column it sums payloads, which has no use.
  MainSum sum(std::uint32_t first, std::uint32_t count, const std::uint64_t* mask = nullptr) const;
  MainRealSum real_sum(std::uint32_t first, std::uint32_t count,
                       const std::uint64_t* mask = nullptr) const;
  MainExtremes extremes(std::uint32_t first, std::uint32_t count,
                        const std::uint64_t* mask = nullptr) const;

 private:
  // A plain cell with this tag holds no text.
  static_assert(MainColumnLayout::kNullTag > text_cell::kInlineBytesMax &&
                MainColumnLayout::kNullTag != text_cell::kOutOfLine);

  std::string_view plain_text(std::uint32_t row) const noexcept {
    return cells_ != nullptr ? domain_.text_at(cells_ + std::size_t{row} * 16)
                             : read_texts_->text(row);
  }
  bool is_plain_null(std::uint32_t row) const noexcept {
    if (owns_texts()) return packed()[row] == 0;
    return cells_ != nullptr
               ? cells_[std::size_t{row} * 16 + 15] == std::byte{MainColumnLayout::kNullTag}
               : ((null_bits_[row / 64] >> (row % 64)) & 1) != 0;
  }
  Value bound(const std::uint64_t* words) const noexcept;
  std::string_view bound_text(const std::uint64_t* words, std::string& memory) const;

  const MainColumnLayout* layout_;
  const std::uint64_t* codes_ = nullptr;  // or plain payloads
  const std::byte* cells_ = nullptr;
  const std::uint64_t* null_bits_ = nullptr;
  ReadTexts* read_texts_ = nullptr;     // of compressed texts
  const std::byte* records_ = nullptr;  // null: single rows are read from the codes
  MainRuns runs_;
  MainDomain domain_;
  const std::byte* parts_ = nullptr;
  std::uint64_t parts_bytes_ = 0;
  std::uint32_t row_count_ = 0;
  std::uint32_t null_count_ = 0;
  std::uint32_t record_stride_ = 0;
  std::uint8_t record_shift_ = 0;
  std::uint8_t code_bits_ = 0;
  MainEncoding encoding_ = MainEncoding::kConstant;
};

}  // namespace flugs::columns
