// Functions of numbers, and texts as numbers and dates.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/calendar.h"
#include "base/check.h"
#include "query/expressions/bound_expr.h"

namespace flugs::query {

namespace {

constexpr double kInt64End = 9'223'372'036'854'775'808.0;  // 2^63

/// a / b, rounded as the operator wants.
std::int64_t divided(Op op, std::int64_t a, std::int64_t b) noexcept {
  FLUGS_DCHECK(b >= 1);
  const std::int64_t whole = a / b;
  const std::int64_t rest = a % b;
  switch (op) {
    case Op::kFloor:
      return whole - (rest < 0 ? 1 : 0);
    case Op::kCeiling:
      return whole + (rest > 0 ? 1 : 0);
    case Op::kToInteger:
      return whole;
    default: {
      FLUGS_DCHECK(op == Op::kRound || op == Op::kToDecimal);
      const std::int64_t distance = rest < 0 ? -rest : rest;
      const bool is_away = distance >= b - distance;
      return whole + (is_away && rest != 0 ? (rest < 0 ? -1 : 1) : 0);
    }
  }
}

/// v / 10^dropped, rounded half away from zero, for a power beyond 64 bits. Only 10^19 has a half
/// that 64 bits hold.
std::int64_t rounded_by_much(std::int64_t v, std::uint32_t dropped) noexcept {
  constexpr std::int64_t kHalf = 5'000'000'000'000'000'000;
  if (dropped != kScaleMax + 1) return 0;
  return v >= kHalf ? 1 : v <= -kHalf ? -1 : 0;
}

/// Rounds to `places` decimal places. A double without more places stays as it is.
double rounded(double v, int places) noexcept {
  constexpr int kPlacesMax = 308;
  constexpr double kNoFractionFrom = 4'503'599'627'370'496.0;  // 2^52
  if (places == 0) return std::round(v);
  if (places > kPlacesMax || !std::isfinite(v)) return v;
  if (places < -kPlacesMax) return 0;
  const double power = std::pow(10.0, std::abs(places));
  if (places < 0) return std::round(v / power) * power;
  const double scaled = v * power;
  return std::fabs(scaled) < kNoFractionFrom ? std::round(scaled) / power : v;
}

template <typename T>
std::optional<T> number_in(std::string_view text) noexcept {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

/// Parses YYYY-MM-DD into days since 1970-01-01; nullopt: it is no date.
std::optional<std::int64_t> days_in(std::string_view text) noexcept {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-' || text[0] == '-') return std::nullopt;
  const auto year = number_in<int>(text.substr(0, 4));
  const auto month = number_in<unsigned>(text.substr(5, 2));
  const auto day = number_in<unsigned>(text.substr(8, 2));
  if (!year || !month || !day || *month < 1 || *month > 12 || *day < 1) return std::nullopt;
  const std::int64_t days = days_from_civil(*year, *month, *day);
  const CivilDate date = civil_from_days(days);
  if (date.month != *month || date.day != *day) return std::nullopt;
  return days;
}

/// NULL where the operand is, and where `compute` finds the function undefined.
template <typename T, typename Compute>
bool compute_defined(const ColumnView& a, std::size_t n, T* result, std::uint8_t* nulls,
                     Compute&& compute) {
  bool has_nulls = false;
  for (std::size_t i = 0; i < n; ++i) {
    nulls[i] = a.nulls != nullptr && a.nulls[i] != 0 ? 1 : 0;
    result[i] = T();
    if (nulls[i] == 0 && !compute(i, result[i])) {
      nulls[i] = 1;
      result[i] = T();
    }
    has_nulls |= nulls[i] != 0;
  }
  return has_nulls;
}

}  // namespace

ColumnView Evaluator::number_function(const BoundExpr& expr, const Batch& batch) {
  const Form form = expr.args[0]->form;
  if (form == Form::kText) return parsed(expr, batch);
  if (form == Form::kInt) return integer_function(expr, batch);
  return expr.form == Form::kReal ? real_function(expr, batch) : integer_of_real(expr, batch);
}

ColumnView Evaluator::integer_function(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::int64_t* result = out(expr).ints(batch.rows);
  bool wrong = false;
  for (std::size_t i = 0; i < batch.rows; ++i) {
    const std::int64_t v = a.ints()[i];  // 0 at a NULL
    if (expr.op == Op::kAbsolute) {
      wrong |= v < 0 && __builtin_sub_overflow(0, v, result + i);
      if (v >= 0) result[i] = v;
    } else {
      const std::int64_t whole = expr.factors[0] == 0 ? rounded_by_much(v, expr.first)
                                                      : divided(expr.op, v, expr.factors[0]);
      wrong |= __builtin_mul_overflow(whole, expr.factors[1], result + i) ||
               (whole != 0 && expr.length > kScaleMax);
    }
  }
  if (wrong) fail_by_overflow(expr);
  return {result, a.nulls};
}

ColumnView Evaluator::real_function(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  double* result = out(expr).reals(batch.rows);
  std::uint8_t* nulls = out(expr).nulls(batch.rows);
  const bool has_nulls =
      compute_defined(a, batch.rows, result, nulls, [&](std::size_t i, double& to) {
        const double v = a.reals()[i];
        switch (expr.op) {
          case Op::kAbsolute:
            to = normal(std::fabs(v));
            return true;
          case Op::kFloor:
            to = normal(std::floor(v));
            return true;
          case Op::kCeiling:
            to = normal(std::ceil(v));
            return true;
          case Op::kRound:
            to = normal(rounded(v, static_cast<std::int32_t>(expr.first)));
            return true;
          case Op::kSquareRoot:
            to = normal(std::sqrt(v));
            return !(v < 0);
          case Op::kLogarithm:
            to = normal(std::log(v));
            return !(v <= 0);
          default:
            FLUGS_DCHECK(expr.op == Op::kExponential);
            to = normal(std::exp(v));
            return true;
        }
      });
  return {result, has_nulls ? nulls : nullptr};
}

ColumnView Evaluator::power(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const ColumnView both{a.data, merged_nulls(expr, a.nulls, b.nulls, batch.rows)};
  double* result = out(expr).reals(batch.rows);
  std::uint8_t* nulls = out(expr).nulls(batch.rows);  // may be those of `both`
  const bool has_nulls =
      compute_defined(both, batch.rows, result, nulls, [&](std::size_t i, double& to) {
        const double base = a.reals()[i];
        const double exponent = b.reals()[i];
        to = normal(std::pow(base, exponent));
        const bool is_undefined = to != to && base == base && exponent == exponent;
        return !is_undefined && !(base == 0 && exponent < 0);
      });
  return {result, has_nulls ? nulls : nullptr};
}

// To an integer, without the fraction, or to a decimal.
ColumnView Evaluator::integer_of_real(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  FLUGS_DCHECK(expr.op == Op::kToInteger || expr.op == Op::kToDecimal);
  const double factor =
      expr.op == Op::kToDecimal ? static_cast<double>(power_of_ten(expr.first)) : 1.0;
  std::int64_t* result = out(expr).ints(batch.rows);
  for (std::size_t i = 0; i < batch.rows; ++i) {
    result[i] = 0;
    if (a.nulls != nullptr && a.nulls[i] != 0) continue;
    const double v =
        expr.op == Op::kToDecimal ? std::round(a.reals()[i] * factor) : std::trunc(a.reals()[i]);
    if (!(v >= -kInt64End && v < kInt64End)) fail_by_overflow(expr);
    result[i] = static_cast<std::int64_t>(v);
  }
  return {result, a.nulls};
}

ColumnView Evaluator::quotient(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  const ColumnView b = evaluate(*expr.args[1], batch);
  const ColumnView both{a.data, merged_nulls(expr, a.nulls, b.nulls, batch.rows)};
  std::int64_t* result = out(expr).ints(batch.rows);
  std::uint8_t* nulls = out(expr).nulls(batch.rows);  // may be those of `both`
  const bool has_nulls =
      compute_defined(both, batch.rows, result, nulls, [&](std::size_t i, std::int64_t& to) {
        const std::int64_t dividend = a.ints()[i];
        const std::int64_t divisor = b.ints()[i];
        if (divisor == 0) return false;
        if (divisor == -1 && dividend == std::numeric_limits<std::int64_t>::min())
          fail_by_overflow(expr);
        to = dividend / divisor;
        return true;
      });
  return {result, has_nulls ? nulls : nullptr};
}

ColumnView Evaluator::parsed(const BoundExpr& expr, const Batch& batch) {
  const ColumnView a = evaluate(*expr.args[0], batch);
  std::uint8_t* nulls = out(expr).nulls(batch.rows);
  if (expr.op == Op::kToDouble) {
    double* result = out(expr).reals(batch.rows);
    const bool has_nulls =
        compute_defined(a, batch.rows, result, nulls, [&](std::size_t i, double& to) {
          const std::optional<double> number = number_in<double>(a.texts()[i]);
          if (number) to = normal(*number);
          return number.has_value();
        });
    return {result, has_nulls ? nulls : nullptr};
  }
  FLUGS_DCHECK(expr.op == Op::kToInteger || expr.op == Op::kToDate);
  std::int64_t* result = out(expr).ints(batch.rows);
  const bool has_nulls =
      compute_defined(a, batch.rows, result, nulls, [&](std::size_t i, std::int64_t& to) {
        const std::optional<std::int64_t> number =
            expr.op == Op::kToDate ? days_in(a.texts()[i]) : number_in<std::int64_t>(a.texts()[i]);
        if (number) to = *number;
        return number.has_value();
      });
  return {result, has_nulls ? nulls : nullptr};
}

}  // namespace flugs::query
