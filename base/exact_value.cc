#include "base/exact_value.h"

#include "base/types.h"

namespace flugs {

bool scale_up(std::int64_t& units, int digits) noexcept {
  for (; digits > 0; --digits)
    if (__builtin_mul_overflow(units, std::int64_t{10}, &units)) return false;
  for (; digits < 0; ++digits) {
    if (units % 10 != 0) return false;
    units /= 10;
  }
  return true;
}

namespace {

// Digits after the point; `column` counts for a value that has the scale of its column.
int scale_of(const Value& value, std::uint8_t column) noexcept {
  return value.scale() == Value::kScaleOfColumn ? column : value.scale();
}

std::optional<Value> to_integer(const Value& value, Type type) noexcept {
  const Family from = facts_of(value.type()).family;
  std::int64_t number = value.raw();
  if (from == Family::kDecimal && value.scale() == Value::kScaleOfColumn) return std::nullopt;
  if (from == Family::kDecimal && !scale_up(number, -value.scale())) return std::nullopt;
  if (from != Family::kInteger && from != Family::kDecimal) return std::nullopt;
  if (is_narrow_type(type) && number != static_cast<std::int32_t>(number)) return std::nullopt;
  return Value::from_raw(type, number);
}

std::optional<Value> to_decimal(const Value& value, std::uint8_t scale) noexcept {
  const Family from = facts_of(value.type()).family;
  std::int64_t units = value.raw();
  if (from != Family::kInteger && from != Family::kDecimal) return std::nullopt;
  if (!scale_up(units, scale - scale_of(value, scale))) return std::nullopt;
  return Value::decimal_units(units);
}

std::optional<Value> to_double(const Value& value) noexcept {
  constexpr std::int64_t kExactMax = std::int64_t{1} << 53;
  const std::int64_t number = value.raw();
  if (!is_integer_type(value.type()) || number < -kExactMax || number > kExactMax)
    return std::nullopt;
  return Value::real(static_cast<double>(number));
}

std::optional<Value> to_time(const Value& value, Type type) noexcept {
  if (!is_time_type(value.type())) return std::nullopt;
  const std::int64_t from = facts_of(value.type()).unit_us;
  const std::int64_t to = facts_of(type).unit_us;
  std::int64_t number = 0;
  if (from % to != 0 || __builtin_mul_overflow(value.raw(), from / to, &number))
    return std::nullopt;
  return Value::from_raw(type, number);
}

}  // namespace

std::optional<Value> exact_value(const Value& value, Type type, std::uint8_t scale) noexcept {
  if (value.is_null()) return value;
  if (value.scale() > Value::kScaleMax && value.scale() != Value::kScaleOfColumn)
    return std::nullopt;
  if (OwnKinds(type, scale).has(value)) return value.with_scale(Value::kind_in_column(type).scale);
  switch (facts_of(type).family) {
    case Family::kInteger:
      return to_integer(value, type);
    case Family::kDecimal:
      return to_decimal(value, scale);
    case Family::kReal:
      return to_double(value);
    case Family::kTime:
      return to_time(value, type);
    case Family::kText:
      if (type == Type::kBytes && value.type() == Type::kString)
        return Value::bytes(value.as_string());
      return std::nullopt;
    case Family::kTruth:
      return std::nullopt;
  }
  return std::nullopt;
}

bool Value::equal_kinds_aside(const Value& a, const Value& b) noexcept {
  if (a.is_null() || b.is_null()) return a.is_null() && b.is_null();
  if (a.type() != Type::kDecimal || b.type() != Type::kDecimal) return false;
  if (a.scale() == kScaleOfColumn || b.scale() == kScaleOfColumn) return a.raw_ == b.raw_;
  const Value& coarse = a.scale() < b.scale() ? a : b;
  const Value& fine = a.scale() < b.scale() ? b : a;
  std::int64_t units = coarse.raw_;
  return scale_up(units, fine.scale() - coarse.scale()) && units == fine.raw_;
}

}  // namespace flugs
