#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "query/scan/scan_unit.h"

namespace flugs::query {

/// The codes that rows of row groups have, for count distinct: the value of a code is looked up
/// once per code. For one worker and one column.
class CodeMarks {
 public:
  /// False for payloads without codes, and if most codes in the range belong to no row.
  static bool fits(const columns::MainColumn& column) noexcept;
  /// Whether codes of the column have the values of those already marked; false: hand over first.
  bool continues(const columns::MainColumn& column) const noexcept {
    return column_ == nullptr || column_->has_codes_of(column);
  }
  /// Takes rows of a column that fits and continues; parameters as in Sink::push_masked. All rows
  /// of a row group with a dictionary have all of its entries.
  void take(const ScanUnit& unit, std::uint32_t column, std::uint32_t first, std::size_t count,
            const std::uint64_t* mask);
  /// Calls `visit(unit, column of the table, packed column, code)` for the marked codes except
  /// NULL's, and clears the marks.
  template <typename Visit>
  void hand_over(Visit&& visit) {
    if (column_ == nullptr) return;
    FLUGS_CHECK(unit_ != nullptr && marks_.size() > column_->code_count() / 64);
    for (std::size_t word = 0; word < marks_.size(); ++word)
      for (std::uint64_t bits = marks_[word]; bits != 0; bits &= bits - 1) {
        const std::uint64_t code = word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        if (!column_->entry_is_null(code)) visit(*unit_, table_column_, *column_, code);
      }
    column_ = nullptr;
  }
  std::uint64_t bytes() const noexcept { return marks_.capacity() * 8; }

 private:
  bool all_are_marked() const noexcept;

  const ScanUnit* unit_ = nullptr;
  const columns::MainColumn* column_ = nullptr;
  std::uint32_t table_column_ = 0;
  std::vector<std::uint64_t> marks_;
};

/// Sets bits for the payloads, less `low`, of rows of a packed column. False: a payload is beyond
/// the bits, and bits of others may be missing.
bool mark_payloads(const columns::MainColumn& column, std::uint32_t first, std::size_t count,
                   const std::uint64_t* mask, std::int64_t low, std::span<std::uint64_t> bits);

}  // namespace flugs::query
