// Functions of dates and timestamps.

#include <algorithm>

#include "base/calendar.h"
#include "base/check.h"
#include "query/expressions/bound_expr.h"

namespace flugs::query {

namespace {

__extension__ using Int128 = __int128;

constexpr std::int64_t kSecondsPerDay = 86'400;
constexpr std::int64_t kMonthsMax = 200'000'000;  // more days than 32 bits hold

std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept {
  FLUGS_DCHECK(b > 0);
  return a / b - (a % b < 0 ? 1 : 0);
}

/// Units of a type of time in a day.
std::int64_t units_per_day(DataType type) noexcept {
  constexpr DataType kDays{Type::kDate, 0};
  return type == kDays ? 1 : unit_ratio(type, kDays);
}

/// Days since 1970-01-01, which was a Thursday. 1: Monday.
std::int64_t weekday_of(std::int64_t days) noexcept {
  return days - floor_div(days + 3, 7) * 7 + 4;
}

std::int64_t part_of(Op op, std::int64_t days) noexcept {
  if (op == Op::kWeekday) return weekday_of(days);
  const CivilDate date = civil_from_days(days);
  switch (op) {
    case Op::kYear:
      return date.year;
    case Op::kQuarter:
      return (date.month + 2) / 3;
    case Op::kMonth:
      return date.month;
    case Op::kDay:
      return date.day;
    default:
      FLUGS_DCHECK(op == Op::kDayOfYear);
      return days - days_from_civil(date.year, 1, 1) + 1;
  }
}

/// The first day of the unit, which is at least a day.
std::int64_t first_day(TimeUnit unit, std::int64_t days) noexcept {
  if (unit == TimeUnit::kDay) return days;
  if (unit == TimeUnit::kWeek) return days - weekday_of(days) + 1;
  const CivilDate date = civil_from_days(days);
  const unsigned month = unit == TimeUnit::kYear      ? 1
                         : unit == TimeUnit::kQuarter ? (date.month - 1) / 3 * 3 + 1
                                                      : date.month;
  return days_from_civil(date.year, month, 1);
}

std::int64_t seconds_of(TimeUnit unit) noexcept {
  FLUGS_DCHECK(unit >= TimeUnit::kHour);
  return unit == TimeUnit::kHour ? 3600 : unit == TimeUnit::kMinute ? 60 : 1;
}

/// Moves a day by `months`, at most kMonthsMax either way. The day of the month stays, or becomes
/// the last day of a shorter month.
std::int64_t months_after(std::int64_t days, std::int64_t months) noexcept {
  const CivilDate date = civil_from_days(days);
  const std::int64_t month = date.year * 12 + (date.month - 1) + months;
  const std::int64_t year = floor_div(month, 12);
  const auto month_of_year = static_cast<unsigned>(month - year * 12 + 1);
  const std::int64_t first = days_from_civil(year, month_of_year, 1);
  const std::int64_t next = month_of_year == 12 ? days_from_civil(year + 1, 1, 1)
                                                : days_from_civil(year, month_of_year + 1, 1);
  return first + std::min<std::int64_t>(date.day, next - first) - 1;
}

void zero_nulls(std::int64_t* values, const std::uint8_t* nulls, std::size_t n) noexcept {
  for (std::size_t i = 0; nulls != nullptr && i < n; ++i)
    if (nulls[i] != 0) values[i] = 0;
}

}  // namespace

ColumnView Evaluator::calendar(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const std::int64_t per_day = units_per_day(expr.args[0]->type);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::int64_t time = a.ints()[i];
    result[i] = part_of(expr.op, per_day == 1 ? time : floor_div(time, per_day));
  }
  zero_nulls(result, a.nulls, batch.rows);
  return {result, a.nulls};
}

ColumnView Evaluator::time_of_day(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const std::int64_t per_day = units_per_day(expr.args[0]->type);
  std::int64_t* result = out(expr).ints(batch.rows);
  if (per_day == 1) {
    std::fill_n(result, batch.rows, 0);
    return {result, a.nulls};
  }
  const std::int64_t per_second = per_day / kSecondsPerDay;
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::int64_t seconds = floor_div(a.ints()[i], per_second);
    const std::int64_t of_day = seconds - floor_div(seconds, kSecondsPerDay) * kSecondsPerDay;
    result[i] = expr.op == Op::kHour     ? of_day / 3600
                : expr.op == Op::kMinute ? of_day / 60 % 60
                                         : of_day % 60;
  }
  return {result, a.nulls};
}

ColumnView Evaluator::truncated_time(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const auto unit = static_cast<TimeUnit>(expr.first);
  const std::int64_t per_day = units_per_day(expr.type);
  std::int64_t* result = out(expr).ints(batch.rows);
  const bool is_of_days = unit <= TimeUnit::kDay;
  if (!is_of_days && per_day == 1) return a;
  const std::int64_t per_unit = is_of_days ? per_day : per_day / kSecondsPerDay * seconds_of(unit);
  bool wrong = false;
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::int64_t units = floor_div(a.ints()[i], per_unit);
    wrong |=
        __builtin_mul_overflow(is_of_days ? first_day(unit, units) : units, per_unit, result + i);
  }
  if (per_day == 1)
    for (std::size_t i = 0; i < batch.rows; ++i)
      wrong |= result[i] != static_cast<std::int32_t>(result[i]);
  if (wrong) fail_by_overflow(expr);  // no NULL is the reason, as the value there is 0
  zero_nulls(result, a.nulls, batch.rows);
  return {result, a.nulls};
}

ColumnView Evaluator::day_of_moment(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const std::int64_t per_day = units_per_day(expr.args[0]->type);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) result[i] = floor_div(a.ints()[i], per_day);
  return {result, a.nulls};
}

ColumnView Evaluator::months_later(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const std::uint8_t* nulls = merged_nulls(expr, a.nulls, b.nulls, batch.rows);
  const std::int64_t per_day = units_per_day(expr.type);
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    result[i] = 0;
    if (nulls != nullptr && nulls[i] != 0) continue;
    const std::int64_t months = b.ints()[i];
    const std::int64_t days = floor_div(a.ints()[i], per_day);
    if (months > kMonthsMax || months < -kMonthsMax) fail_by_overflow(expr);
    const std::int64_t later = months_after(days, months);
    // The day may begin before the first time that 64 bits hold.
    const Int128 moment = Int128{a.ints()[i]} + Int128{later - days} * per_day;
    result[i] = static_cast<std::int64_t>(moment);
    if (moment != result[i] || (per_day == 1 && later != static_cast<std::int32_t>(later)))
      fail_by_overflow(expr);
  }
  return {result, nulls};
}

}  // namespace flugs::query
