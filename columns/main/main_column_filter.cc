#include <array>
#include <bit>
#include <limits>

#include "base/check.h"
#include "columns/column/column.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_column.h"

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

}  // namespace

std::int64_t MainColumn::ordered(const Value& value) const noexcept {
  return type_ == Type::kDouble ? ordered_double(normalised(value, type_).raw()) : value.raw();
}

std::uint64_t MainColumn::code_bound(std::int64_t payload, bool above) const noexcept {
  FLUGS_DCHECK(entries_ != nullptr && !is_text());
  std::uint64_t low = has_nulls() ? 1 : 0;
  std::uint64_t high = code_count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::int64_t raw = integer_at(entries_ + middle * 8);
    const std::int64_t entry = type_ == Type::kDouble ? ordered_double(raw) : raw;
    if (entry < payload || (above && entry == payload))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

std::uint64_t MainColumn::code_bound(std::string_view text, bool above) const noexcept {
  std::uint64_t low = has_nulls() ? 1 : 0;
  std::uint64_t high = code_count_;
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    const int order = entry_text(middle).compare(text);
    if (order < 0 || (above && order == 0))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

MainRange MainColumn::integers_within(const ValueBounds& bounds) const noexcept {
  const std::int64_t min =
      ordered(Value::from_raw(type_, static_cast<std::int64_t>(layout_->min[0])));
  const std::int64_t max =
      ordered(Value::from_raw(type_, static_cast<std::int64_t>(layout_->max[0])));
  std::int64_t low = bounds.low ? ordered(*bounds.low) : kLeast;
  std::int64_t high = bounds.high ? ordered(*bounds.high) : kGreatest;
  MainRange range;
  const bool above_low = bounds.low && bounds.low_excluded;
  const bool below_high = bounds.high && bounds.high_excluded;
  if ((above_low && low == kGreatest) || (below_high && high == kLeast)) return range;
  low = std::max(low + (above_low ? 1 : 0), min);
  high = std::min(high - (below_high ? 1 : 0), max);
  if (low > high) return range;
  range.match = Match::kSome;
  if (encoding_ == MainEncoding::kPlain) {
    range.low = static_cast<std::uint64_t>(low);
    range.high = static_cast<std::uint64_t>(high);
  } else if (entries_ != nullptr) {
    range.low = code_bound(low, false);
    range.high = code_bound(high, true) - 1;
    if (range.low > range.high) return {};
  } else if (encoding_ != MainEncoding::kConstant) {
    range.low = static_cast<std::uint64_t>(low) - base_;
    range.high = static_cast<std::uint64_t>(high) - base_;
  }
  if (low == min && high == max && !has_nulls()) range.match = Match::kAll;
  return range;
}

MainRange MainColumn::texts_within(const ValueBounds& bounds) const noexcept {
  MainRange range;
  // The whole group is on one side of a bound, or between the bounds.
  const std::string_view min = view(reinterpret_cast<const std::byte*>(layout_->min));
  const std::string_view max = view(reinterpret_cast<const std::byte*>(layout_->max));
  const ValueBounds above{bounds.low, {}, bounds.low_excluded, false};
  const ValueBounds below{{}, bounds.high, false, bounds.high_excluded};
  if (!is_within(max, above) || !is_within(min, below)) return range;
  range.match = Match::kSome;
  range.text = bounds;
  if (is_within(min, bounds) && is_within(max, bounds) && !has_nulls()) range.match = Match::kAll;
  if (entries_ == nullptr) return range;
  range.low = bounds.low ? code_bound(bounds.low->as_string(), bounds.low_excluded)
                         : std::uint64_t{has_nulls()};
  range.high =
      bounds.high ? code_bound(bounds.high->as_string(), !bounds.high_excluded) : code_count_;
  if (range.low >= range.high) return {};
  --range.high;
  return range;
}

MainRange MainColumn::within(const ValueBounds& bounds) const noexcept {
  if (null_count_ == row_count_) return {};
  if ((bounds.low && bounds.low->is_null()) || (bounds.high && bounds.high->is_null())) return {};
  return is_text() ? texts_within(bounds) : integers_within(bounds);
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
  if (code_count_ == 0) return std::nullopt;
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
  if (run_count_ != 0) return filter_runs(first, count, range, mask);
  if (cells_ != nullptr) return filter_cells(first, count, range, mask);
  const KeepTail tail(mask, count);
  filter_blocks(first / 64, (std::size_t{count} + 63) / 64, range, mask);
}

void MainColumn::filter_blocks(std::size_t first, std::size_t count, const MainRange& range,
                               std::uint64_t* mask) const {
  if (null_bits_ != nullptr)
    for (std::size_t w = 0; w < count; ++w) mask[w] &= ~null_bits_[first + w];
  kernels().filter(packed(), first, count, range.low, range.high, range.outside, mask);
  // The code of NULL is never inside a range, but it is outside.
  if (range.outside && has_nulls() && null_bits_ == nullptr)
    kernels().filter(packed(), first, count, 0, 0, true, mask);
}

void MainColumn::filter_runs(std::uint32_t first, std::uint32_t count, const MainRange& range,
                             std::uint64_t* mask) const {
  for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
    const bool inside = code - range.low <= range.high - range.low;
    if (inside == range.outside || entry_is_null(code)) clear_bits(mask, from - first, rows);
  });
}

void MainColumn::filter_cells(std::uint32_t first, std::uint32_t count, const MainRange& range,
                              std::uint64_t* mask) const {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (((mask[i / 64] >> (i % 64)) & 1) == 0) continue;
    const bool matches =
        is_within(text(first + i), range.text) != range.outside && !is_null(first + i);
    if (!matches) mask[i / 64] &= ~(std::uint64_t{1} << (i % 64));
  }
}

void MainColumn::filter_codes(std::uint32_t first, std::uint32_t count, const std::uint64_t* wanted,
                              std::uint64_t* mask) const {
  FLUGS_CHECK(first % 64 == 0 && first <= row_count_ && count <= row_count_ - first);
  const auto is_wanted = [&](std::uint64_t code) { return (wanted[code / 64] >> (code % 64)) & 1; };
  if (encoding_ == MainEncoding::kConstant) {
    if (is_wanted(0) == 0) clear_bits(mask, 0, count);
    return;
  }
  if (run_count_ != 0) {
    for_runs(first, count, [&](std::uint32_t from, std::uint32_t rows, std::uint64_t code) {
      if (is_wanted(code) == 0) clear_bits(mask, from - first, rows);
    });
    return;
  }
  FLUGS_CHECK(code_count_ != 0 && code_count_ <= (std::uint64_t{1} << 32));
  const KeepTail tail(mask, count);
  const auto limit = static_cast<std::uint32_t>(code_count_ - 1);
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
