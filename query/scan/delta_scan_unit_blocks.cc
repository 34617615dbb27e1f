#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/check.h"
#include "base/types.h"
#include "columns/main/main_blocks.h"
#include "columns/main/main_kernels.h"
#include "query/scan/delta_scan_unit.h"

namespace flugs::query {

namespace {

using columns::PackedCodes;

// If fewer than this fraction of a block's rows are wanted, they are read one by one.
constexpr std::size_t kSparseInBlock = 8;

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

bool is_sparse(std::size_t count, const std::uint64_t* mask) noexcept {
  return mask != nullptr && columns::count_bits(mask, 0, count) * kSparseInBlock < count;
}

bool is_one_value(const RangeCondition& range, Lane lane) noexcept {
  if (!range.low || !range.high || range.low_excluded || range.high_excluded) return false;
  return lane == Lane::kText ? range.low->as_string() == range.high->as_string()
                             : range.low->raw() == range.high->raw();
}

/// The integers from `low` to `high`; none when low > high.
struct Bounds {
  std::int64_t low = kLeast;
  std::int64_t high = kGreatest;

  explicit Bounds(const RangeCondition& range) noexcept {
    if (range.low) low = range.low->raw();
    if (range.high) high = range.high->raw();
    const bool is_none = (range.low_excluded && range.low && low == kGreatest) ||
                         (range.high_excluded && range.high && high == kLeast);
    if (range.low_excluded && range.low && !is_none) ++low;
    if (range.high_excluded && range.high && !is_none) --high;
    if (is_none) low = kGreatest, high = kLeast;
  }
};

}  // namespace

/// Adjacent rows for which a column is unpacked: they stay in the first-level cache.
struct DeltaScanUnit::Step {
  static constexpr std::size_t kRows = 512;
  static_assert(kRows % 64 == 0);

  std::uint32_t first = 0;
  std::size_t count = 0;
  std::array<std::uint64_t, kRows / 64> wanted{};  // a bit per row that counts
  // Longer than kRows, because kernels may read behind the rows.
  alignas(64) std::array<std::uint32_t, kRows + 16> codes{};
  alignas(64) std::array<std::int64_t, kRows + 8> values{};

  std::size_t blocks() const noexcept { return (count + 63) / 64; }
  PackedCodes packed_codes() const noexcept {
    return {reinterpret_cast<const std::uint64_t*>(codes.data()), 32};
  }
  PackedCodes packed_values() const noexcept {
    return {reinterpret_cast<const std::uint64_t*>(values.data()), 64};
  }
  void keep_code(std::uint32_t code, bool outside) noexcept {
    columns::kernels().filter(packed_codes(), 0, blocks(), code, code, outside, wanted.data());
  }
  std::uint64_t wanted_count() const noexcept {
    return columns::count_bits(wanted.data(), 0, blocks() * 64);
  }

  /// Calls `take(step, first word)` for the rows whose bits are set (no mask: all).
  template <typename Take>
  static void for_each(std::uint32_t first, std::size_t count, const std::uint64_t* mask,
                       Take&& take) {
    FLUGS_DCHECK(first % 64 == 0);
    Step step;
    for (std::size_t done = 0; done < count; done += kRows) {
      step.first = first + static_cast<std::uint32_t>(done);
      step.count = std::min(kRows, count - done);
      std::uint64_t any = 0;
      for (std::size_t w = 0; w < step.blocks(); ++w) {
        const std::uint64_t bits = mask == nullptr ? ~std::uint64_t{0} : mask[done / 64 + w];
        step.wanted[w] = bits & columns::low_bits(static_cast<unsigned>(
                                    std::min<std::size_t>(64, step.count - w * 64)));
        any |= step.wanted[w];
      }
      if (any != 0) take(step, done / 64);
    }
  }
  /// The same; then copies `wanted` to the mask.
  template <typename Narrow>
  static void narrow_each(std::uint32_t first, std::size_t count, std::uint64_t* mask,
                          Narrow&& narrow) {
    for_each(first, count, mask, [&](Step& step, std::size_t word) {
      narrow(step);
      std::copy_n(step.wanted.data(), step.blocks(), mask + word);
    });
  }
};

// Rows that do not count may have any code, for instance rows of a transaction that began later.
void DeltaScanUnit::load_codes(std::uint32_t column, Step& step) const {
  FLUGS_DCHECK(domain_of(column) != nullptr);
  const std::uint32_t end = domain_of(column)->count();
  if (read_codes({step.first, nullptr, step.count}, access(column), step.codes.data()) < end)
    return;
  for (std::uint32_t i = 0; i < step.count; ++i) {
    if (step.codes[i] < end) continue;
    if ((step.wanted[i / 64] >> (i % 64) & 1) != 0)
      wrong_code(column, {step.first + i, nullptr, 1}, end);
    step.codes[i] = 0;
  }
}

// Removes the NULL rows from those that count, or all others.
void DeltaScanUnit::keep_nulls(std::uint32_t column, bool others, Step& step) const {
  if (const DictionaryDomain* domain = domain_of(column); domain != nullptr) {
    const std::uint32_t null_code = domain->null_code();
    if (null_code != CodeDomain::kNone)
      step.keep_code(null_code, others);
    else if (!others)
      step.wanted.fill(0);
    return;
  }
  if (const RowLayout::Access bit = null_access(column); bit.word != 0) {
    read_codes({step.first, nullptr, step.count}, bit, step.codes.data());
    step.keep_code(0, !others);
  } else if (!others) {
    step.wanted.fill(0);
  }
}

// Loads payloads of an integer column; NULL rows no longer count.
void DeltaScanUnit::load_values(std::uint32_t column, Step& step) const {
  if (const DictionaryDomain* domain = domain_of(column); domain != nullptr) {
    load_codes(column, step);
    keep_nulls(column, true, step);
    payloads(*domain, step.codes.data(), step.count, step.values.data());
  } else {
    read_integers(column, {step.first, nullptr, step.count}, step.values.data());
    keep_nulls(column, true, step);
  }
}

// The code of a value; kNone if no visible row has it.
std::uint32_t DeltaScanUnit::code_of(const DictionaryDomain& domain, const Value& value) {
  const Type type = domain.type();
  Value wanted;
  if (is_text_type(type)) {
    wanted = Value::from_bytes(type, value.as_string());
  } else {
    if (is_narrow_type(type) && value.raw() != static_cast<std::int32_t>(value.raw()))
      return CodeDomain::kNone;
    wanted = Value::from_raw(type, value.raw());
  }
  const std::uint32_t code = domain.dictionary().find(wanted);
  return code < domain.count() ? code : CodeDomain::kNone;
}

bool DeltaScanUnit::narrow(const ScanUnitRange& in_unit, std::uint32_t first, std::size_t count,
                           std::uint64_t* mask) const {
  using Kind = RangeCondition::Kind;
  FLUGS_CHECK(in_unit.condition != nullptr);
  const RangeCondition& range = *in_unit.condition;
  const std::uint32_t column = range.column;
  if (is_sparse(count, mask) || is_read_by_row(column)) return false;
  const DictionaryDomain* domain = domain_of(column);
  const Lane lane = lane_of(schema_[column].type);
  if (range.kind == Kind::kIsNull || range.kind == Kind::kIsNotNull) {
    Step::narrow_each(first, count, mask, [&](Step& step) {
      if (domain != nullptr) load_codes(column, step);
      keep_nulls(column, range.kind == Kind::kIsNotNull, step);
    });
    return true;
  }
  const bool is_outside = range.kind == Kind::kOutside;
  if (lane != Lane::kReal && domain != nullptr && is_one_value(range, lane)) {
    const std::uint32_t code = code_of(*domain, *range.low);
    Step::narrow_each(first, count, mask, [&](Step& step) {
      load_codes(column, step);
      if (is_outside) keep_nulls(column, true, step);
      step.keep_code(code, is_outside);  // kNone is the code of no row
    });
    return true;
  }
  if (lane != Lane::kInt) return false;
  const Bounds bounds(range);
  if (bounds.low > bounds.high) {
    std::fill_n(mask, (count + 63) / 64, 0);
    return true;
  }
  Step::narrow_each(first, count, mask, [&](Step& step) {
    load_values(column, step);
    columns::kernels().filter(
        step.packed_values(), 0, step.blocks(), static_cast<std::uint64_t>(bounds.low),
        static_cast<std::uint64_t>(bounds.high), is_outside, step.wanted.data());
  });
  return true;
}

bool DeltaScanUnit::add_up(std::uint32_t column, std::uint32_t first, std::size_t count,
                           const std::uint64_t* mask, Totals& totals) const {
  FLUGS_DCHECK(is_inside({first, nullptr, count}));
  if (lane_of(schema_[column].type) != Lane::kInt || is_read_by_row(column)) return false;
  if (is_sparse(count, mask)) return false;
  // As unsigned distances from the least integer they cannot overflow.
  const auto origin = static_cast<std::uint64_t>(kLeast);
  Step::for_each(first, count, mask, [&](Step& step, std::size_t) {
    load_values(column, step);
    const columns::CodeSum sum = columns::kernels().sum(step.packed_values(), 0, step.blocks(),
                                                        origin, false, step.wanted.data());
    const auto rows = static_cast<std::int64_t>(step.wanted_count());
    totals.sum += static_cast<Int128>(sum.sum) + Int128{kLeast} * rows;
    totals.count += rows;
    FLUGS_DCHECK(totals.count <= static_cast<std::int64_t>(count));
  });
  return true;
}

bool DeltaScanUnit::extremes(std::uint32_t column, std::uint32_t first, std::size_t count,
                             const std::uint64_t* mask, Value& least, Value& greatest) const {
  if (lane_of(schema_[column].type) != Lane::kInt || is_read_by_row(column)) return false;
  if (is_sparse(count, mask)) return false;
  const auto origin = static_cast<std::uint64_t>(kLeast);
  columns::CodeExtremes all;
  Step::for_each(first, count, mask, [&](Step& step, std::size_t) {
    load_values(column, step);
    if (step.wanted_count() == 0) return;
    const columns::CodeExtremes here = columns::kernels().extremes(
        step.packed_values(), 0, step.blocks(), origin, origin, step.wanted.data());
    all.min = std::min(all.min, here.min);
    all.max = std::max(all.max, here.max);
  });
  if (all.min > all.max) return true;
  const Type type = schema_[column].type.type;
  least = Value::from_raw(type, static_cast<std::int64_t>(all.min + origin));
  greatest = Value::from_raw(type, static_cast<std::int64_t>(all.max + origin));
  return true;
}

// From rows at both ends, because values often come in some order. It does not matter which of the
// rows count.
bool DeltaScanUnit::likely_extremes(std::uint32_t column, Value& least, Value& greatest) const {
  if (domain_of(column) != nullptr) return false;  // codes of rows that do not count may be wrong
  const std::uint32_t count = std::min<std::uint32_t>(Step::kRows, chunk_.row_count);
  const std::uint32_t last = (chunk_.row_count - count) / 64 * 64;
  if (!extremes(column, 0, count, nullptr, least, greatest)) return false;
  Value least_too;
  Value greatest_too;
  extremes(column, last, count, nullptr, least_too, greatest_too);
  if (least.is_null() || least_too.is_null()) return !least.is_null();
  if (least_too.raw() < least.raw()) least = least_too;
  if (greatest_too.raw() > greatest.raw()) greatest = greatest_too;
  return true;
}

}  // namespace flugs::query
