#include "query/operators/code_marks.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "columns/main/main_blocks.h"

namespace flugs::query {

namespace {

using columns::MainColumn;

// Rows unpacked at a time: they stay in the first-level cache.
constexpr std::uint32_t kMarkRows = 1024;
static_assert(kMarkRows % 64 == 0);

// Calls `step(first, rows, their mask)` for kMarkRows at a time, if any of them are selected.
template <typename Step>
void for_steps(std::uint32_t first, std::size_t count, const std::uint64_t* mask,
               const Step& step) {
  FLUGS_DCHECK(first % 64 == 0);
  for (std::size_t done = 0; done < count; done += kMarkRows) {
    const std::size_t n = std::min<std::size_t>(kMarkRows, count - done);
    std::array<std::uint64_t, kMarkRows / 64> wanted;
    std::uint64_t any = 0;
    for (std::size_t w = 0; w < (n + 63) / 64; ++w) {
      const std::size_t rest = n - w * 64;
      wanted[w] = mask == nullptr ? ~std::uint64_t{0} : mask[done / 64 + w];
      if (rest < 64) wanted[w] &= (std::uint64_t{1} << rest) - 1;
      any |= wanted[w];
    }
    if (any != 0) step(first + static_cast<std::uint32_t>(done), n, wanted.data());
  }
}

// Calls `one(i)` for the rows of a step whose bits are set.
template <typename One>
void for_rows(const std::uint64_t* mask, std::size_t count, const One& one) {
  for (std::size_t begin = 0; begin < count; begin += 64) {
    std::uint64_t bits = mask[begin / 64];
    if (bits == ~std::uint64_t{0}) {
      for (std::size_t i = begin; i < begin + 64; ++i) one(i);
    } else {
      for (; bits != 0; bits &= bits - 1)
        one(begin + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

void set_bit(std::uint64_t* bits, std::uint64_t i) noexcept {
  bits[i / 64] |= std::uint64_t{1} << (i % 64);
}

}  // namespace

bool CodeMarks::fits(const MainColumn& column) noexcept {
  return column.code_count() != 0 &&
         column.code_count() <= std::uint64_t{column.row_count()} * 4 + 65536;
}

// Checked only if looking at the marks costs less than looking at the rows.
bool CodeMarks::all_are_marked() const noexcept {
  const std::uint64_t codes = column_->code_count();
  if (codes > kMarkRows) return false;
  std::uint64_t marked = column_->has_nulls() ? ~marks_[0] & 1 : 0;
  for (const std::uint64_t word : marks_) marked += static_cast<unsigned>(std::popcount(word));
  return marked == codes;
}

void CodeMarks::take(const ScanUnit& unit, std::uint32_t table_column, std::uint32_t first,
                     std::size_t count, const std::uint64_t* mask) {
  const MainColumn* packed = unit.packed(table_column);
  FLUGS_CHECK(packed != nullptr && fits(*packed) && continues(*packed));
  const MainColumn& column = *packed;
  if (column_ == nullptr) marks_.assign(column.code_count() / 64 + 1, 0);
  unit_ = &unit;
  column_ = &column;
  table_column_ = table_column;
  if (mask == nullptr && count == column.row_count() && column.has_entries()) {
    for (std::uint64_t code = 0; code < column.code_count(); code += 64)
      marks_[code / 64] |= columns::low_bits(
          static_cast<unsigned>(std::min<std::uint64_t>(64, column.code_count() - code)));
    return;
  }
  std::array<std::uint32_t, kMarkRows> codes;
  for_steps(first, count, mask, [&](std::uint32_t at, std::size_t n, const std::uint64_t* wanted) {
    if (all_are_marked()) return;
    column.codes(at, static_cast<std::uint32_t>(n), codes.data());
    for_rows(wanted, n, [&](std::size_t i) { set_bit(marks_.data(), codes[i]); });
  });
}

bool mark_payloads(const MainColumn& column, std::uint32_t first, std::size_t count,
                   const std::uint64_t* mask, std::int64_t low, std::span<std::uint64_t> bits) {
  FLUGS_DCHECK(!column.is_text());
  const std::uint64_t end = bits.size() * 64;
  std::uint64_t* words = bits.data();
  // For a code without NULLs, the bit's distance from the bit of code 0 is the code.
  const std::uint64_t origin =
      static_cast<std::uint64_t>(column.code_count() == 0 ? 0 : column.entry_integer(0)) -
      static_cast<std::uint64_t>(low);
  const std::uint64_t codes_max = column.code_count();
  if (codes_max != 0 && codes_max <= (std::uint64_t{1} << 32) && !column.has_nulls() &&
      !column.has_entries() && codes_max <= end && origin <= end - codes_max) {
    std::array<std::uint32_t, kMarkRows> codes;
    for_steps(first, count, mask,
              [&](std::uint32_t at, std::size_t n, const std::uint64_t* wanted) {
                column.codes(at, static_cast<std::uint32_t>(n), codes.data());
                for_rows(wanted, n, [&](std::size_t i) { set_bit(words, origin + codes[i]); });
              });
    return true;
  }
  bool all = true;
  std::array<std::int64_t, kMarkRows> values;
  std::array<std::uint64_t, kMarkRows / 64> nulls;
  for_steps(first, count, mask, [&](std::uint32_t at, std::size_t n, std::uint64_t* wanted) {
    column.integers(at, static_cast<std::uint32_t>(n), values.data(), nulls.data());
    for (std::size_t w = 0; w < (n + 63) / 64; ++w) wanted[w] &= ~nulls[w];
    for_rows(wanted, n, [&](std::size_t i) {
      const std::uint64_t bit =
          static_cast<std::uint64_t>(values[i]) - static_cast<std::uint64_t>(low);
      all &= bit < end;
      if (bit < end) set_bit(words, bit);
    });
  });
  return all;
}

}  // namespace flugs::query
