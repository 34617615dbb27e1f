#include <array>
#include <bit>
#include <limits>
#include <string>

#include "base/check.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_column.h"
#include "columns/main/main_text_reader.h"

namespace flugs::columns {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

// Restores the bits behind `count`.
class KeepTail {
 public:
  KeepTail(std::uint64_t* mask, std::uint32_t count) noexcept
      : word_(count % 64 != 0 ? mask + count / 64 : nullptr),
        keep_(~low_bits(count % 64)),
        before_(word_ != nullptr ? *word_ : 0) {}
  KeepTail(const KeepTail&) = delete;
  KeepTail& operator=(const KeepTail&) = delete;
  ~KeepTail() {
    if (word_ != nullptr) *word_ = (*word_ & ~keep_) | (before_ & keep_);
  }

 private:
  std::uint64_t* word_;
  std::uint64_t keep_;
  std::uint64_t before_;
};

bool is_within(std::string_view text, const ValueBounds& bounds) noexcept {
  if (bounds.low) {
    const int order = text.compare(bounds.low->as_string());
    if (order < 0 || (order == 0 && bounds.low_excluded)) return false;
  }
  if (bounds.high) {
    const int order = text.compare(bounds.high->as_string());
    if (order > 0 || (order == 0 && bounds.high_excluded)) return false;
  }
  return true;
}

MainRange integers_within(const MainColumn& column, const ValueBounds& bounds) noexcept {
  const MainDomain& domain = column.domain();
  const std::int64_t min = domain.ordered(column.min());
  const std::int64_t max = domain.ordered(column.max());
  std::int64_t low = bounds.low ? domain.ordered(*bounds.low) : kLeast;
  std::int64_t high = bounds.high ? domain.ordered(*bounds.high) : kGreatest;
  MainRange range;
  const bool above_low = bounds.low && bounds.low_excluded;
  const bool below_high = bounds.high && bounds.high_excluded;
  if ((above_low && low == kGreatest) || (below_high && high == kLeast)) return range;
  low = std::max(low + (above_low ? 1 : 0), min);
  high = std::min(high - (below_high ? 1 : 0), max);
  if (low > high) return range;
  range.match = Match::kSome;
  if (column.encoding() == MainEncoding::kPlain) {
    range.low = static_cast<std::uint64_t>(low);
    range.high = static_cast<std::uint64_t>(high);
  } else if (domain.has_entries()) {
    range.low = domain.bound(low, false);
    range.high = domain.bound(high, true);
    if (range.low >= range.high) return {};
    --range.high;
  } else if (column.encoding() != MainEncoding::kConstant) {
    range.low = static_cast<std::uint64_t>(low) - domain.base();
    range.high = static_cast<std::uint64_t>(high) - domain.base();
  }
  if (low == min && high == max && !column.has_nulls()) range.match = Match::kAll;
  return range;
}

MainRange texts_within(const MainColumn& column, const ValueBounds& bounds) noexcept {
  MainRange range;
  // The whole group is on one side of a bound, or between the bounds.
  std::string memory[2];
  const std::string_view min = column.min_text(memory[0]);
  const std::string_view max = column.max_text(memory[1]);
  const MainDomain& domain = column.domain();
  const ValueBounds above{bounds.low, {}, bounds.low_excluded, false};
  const ValueBounds below{{}, bounds.high, false, bounds.high_excluded};
  if (!is_within(max, above) || !is_within(min, below)) return range;
  range.match = Match::kSome;
  range.text = bounds;
  if (is_within(min, bounds) && is_within(max, bounds) && !column.has_nulls())
    range.match = Match::kAll;
  if (!domain.has_entries()) return range;
  range.low =
      bounds.low ? domain.bound(bounds.low->as_string(), bounds.low_excluded) : domain.first_code();
  range.high =
      bounds.high ? domain.bound(bounds.high->as_string(), !bounds.high_excluded) : domain.count();
  if (range.low >= range.high) return {};
  --range.high;
  return range;
}

void filter_blocks(const MainColumn& column, std::size_t first, std::size_t count,
                   const MainRange& range, std::uint64_t* mask) {
  const std::uint64_t* nulls = column.plain_null_words();
  if (nulls != nullptr)
    for (std::size_t w = 0; w < count; ++w) mask[w] &= ~nulls[first + w];
  kernels().filter(column.packed(), first, count, range.low, range.high, range.outside, mask);
  // The code of NULL is never inside a range, but it is outside.
  if (range.outside && column.has_nulls() && nulls == nullptr)
    kernels().filter(column.packed(), first, count, 0, 0, true, mask);
}

void filter_runs(const MainColumn& column, std::uint32_t first, std::uint32_t count,
                 const MainRange& range, std::uint64_t* mask) {
  column.for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
    const bool inside = code - range.low <= range.high - range.low;
    if (inside == range.outside || column.entry_is_null(code)) clear_bits(mask, from - first, rows);
  });
}

void filter_texts(const MainColumn& column, std::uint32_t first, std::uint32_t count,
                  const MainRange& range, std::uint64_t* mask) {
  MainTextReader reader(column);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (((mask[i / 64] >> (i % 64)) & 1) == 0) continue;
    const bool matches = is_within(reader.text(first + i), range.text) != range.outside &&
                         !column.is_null(first + i);
    if (!matches) mask[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }
}

}  // namespace

MainRange MainColumn::within(const ValueBounds& bounds) const noexcept {
  if (null_count_ == row_count_) return {};
  if ((bounds.low && bounds.low->is_null()) || (bounds.high && bounds.high->is_null())) return {};
  return is_text() ? texts_within(*this, bounds) : integers_within(*this, bounds);
}

MainRange MainColumn::outside(const ValueBounds& bounds) const noexcept {
  if ((bounds.low && bounds.low->is_null()) || (bounds.high && bounds.high->is_null())) return {};
  MainRange range = within(bounds);
  if (range.match == Match::kNone) return not_null();
  if (range.match == Match::kAll) return {};
  range.outside = true;
  return range;
}

std::optional<std::uint64_t> MainColumn::code_of(const Value& value) const noexcept {
  if (code_count() == 0) return std::nullopt;
  if (value.is_null()) return has_nulls() ? std::optional<std::uint64_t>(0) : std::nullopt;
  const MainRange range = within(ValueBounds::equal(value));
  return range.match == Match::kNone ? std::nullopt : std::optional<std::uint64_t>(range.low);
}

void MainColumn::filter(std::uint32_t first, std::uint32_t count, const MainRange& range,
                        std::uint64_t* mask) const {
  FLUGS_CHECK(first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  FLUGS_DCHECK(mask != nullptr);
  if (range.match == Match::kAll || count == 0) return;
  if (range.match == Match::kNone) return clear_bits(mask, 0, count);
  if (!runs_.empty()) return filter_runs(*this, first, count, range, mask);
  if (cells_ != nullptr || owns_texts()) return filter_texts(*this, first, count, range, mask);
  const KeepTail tail(mask, count);
  filter_blocks(*this, first / 64, (std::size_t{count} + 63) / 64, range, mask);
}

void MainColumn::filter_codes(std::uint32_t first, std::uint32_t count, const std::uint64_t* wanted,
                              std::uint64_t* mask) const {
  FLUGS_CHECK(first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  const auto is_wanted = [&](std::uint64_t code) { return (wanted[code / 64] >> (code % 64)) & 1; };
  if (encoding_ == MainEncoding::kConstant) {
    if (is_wanted(0) == 0) clear_bits(mask, 0, count);
    return;
  }
  if (!runs_.empty()) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      if (is_wanted(code) == 0) clear_bits(mask, from - first, rows);
    });
    return;
  }
  FLUGS_CHECK(code_count() != 0 && code_count() <= (std::uint64_t{1} << 32));
  const KeepTail tail(mask, count);
  const auto limit = static_cast<std::uint32_t>(code_count() - 1);
  kernels().members(packed(), first / 64, (std::size_t{count} + 63) / 64, wanted, limit, mask);
}

std::optional<std::uint32_t> MainColumn::find(const Value& value, const std::uint64_t* mask) const {
  constexpr std::uint32_t kStep = 32 * 64;
  FLUGS_DCHECK(mask != nullptr);
  const MainRange range = within(ValueBounds::equal(value));
  if (range.match == Match::kNone) return std::nullopt;
  std::array<std::uint64_t, kStep / 64> found;
  for (std::uint32_t first = 0; first < row_count_; first += kStep) {
    const std::uint32_t count = std::min(kStep, row_count_ - first);
    std::copy_n(mask + first / 64, (count + 63) / 64, found.data());
    if (count % 64 != 0) found[count / 64] &= low_bits(count % 64);
    if (range.match == Match::kSome) filter(first, count, range, found.data());
    for (std::uint32_t w = 0; w < (count + 63) / 64; ++w)
      if (found[w] != 0)
        return first + w * 64 + static_cast<std::uint32_t>(std::countr_zero(found[w]));
  }
  return std::nullopt;
}

void MainColumn::filter_is_null(std::uint32_t first, std::uint32_t count,
                                std::uint64_t* mask) const {
  FLUGS_CHECK(first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  if (!has_nulls()) return clear_bits(mask, 0, count);
  std::uint64_t nulls[64];
  for (std::uint32_t done = 0; done < count;) {
    const std::uint32_t rows = std::min<std::uint32_t>(64 * 64, count - done);
    null_bits(first + done, rows, nulls);
    if (rows % 64 != 0) nulls[rows / 64] |= ~low_bits(rows % 64);
    for (std::uint32_t w = 0; w < (rows + 63) / 64; ++w) mask[done / 64 + w] &= nulls[w];
    done += rows;
  }
}

}  // namespace flugs::columns
