#include "test/support/model_value.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace flugs::test {

namespace {

template <typename T>
int three_way(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

std::int64_t random_integer(std::uint64_t domain, Random& random, std::int64_t min,
                            std::int64_t max) {
  const std::array<std::int64_t, 6> extremes = {min, max, -1, 0, 1, max / 2};
  if (random.chance(4)) return extremes[random.below(extremes.size())];
  if (random.chance(4)) return static_cast<std::int64_t>(random.next()) % (max / 2);
  return static_cast<std::int64_t>(random.below(domain));
}

double random_double(std::uint64_t domain, Random& random) {
  const std::array<double, 6> extremes = {
      std::numeric_limits<double>::infinity(),   -std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::quiet_NaN(),  -0.0,
      std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::lowest()};
  if (random.chance(6)) return extremes[random.below(extremes.size())];
  return (static_cast<double>(random.below(domain)) - static_cast<double>(domain / 2)) / 4;
}

// Up to 15 bytes lie in the cell, more in the heap; zero bytes and high bytes must not matter.
std::string random_text(std::uint64_t domain, Random& random) {
  const std::uint64_t number = random.chance(4) ? random.next() : random.below(domain);
  std::string text = "v" + std::to_string(number);
  switch (number % 7) {
    case 0:
    case 5:
      return text + std::string(30 + number % 90, static_cast<char>('a' + number % 26));
    case 1:
      return std::string(number % 3, '\0') + text;
    case 2:
      return text.substr(0, number % 2);
    case 3:
      return "\xff" + text;
    case 4:
      return text + std::string(15 - text.size() % 15, 'y');
    default:
      return text;
  }
}

}  // namespace

ModelValue ModelValue::of(Type type, const Value& value) {
  ModelValue model;
  model.type = type;
  model.null = value.is_null();
  if (model.null) return model;
  model.raw = value.raw();
  model.text = std::string(value.as_string());
  if (type == Type::kDouble) {
    const double v = value.as_double();
    if (v == 0.0) model.raw = 0;
    if (std::isnan(v)) model.raw = Value::real(std::numeric_limits<double>::quiet_NaN()).raw();
  }
  return model;
}

Value ModelValue::view() const {
  if (null) return Value::null();
  if (type == Type::kString || type == Type::kBytes) return Value::from_bytes(type, text);
  return Value::from_raw(type, raw);
}

int compare(const ModelValue& a, const ModelValue& b) {
  if (a.null || b.null) return three_way(!a.null, !b.null);
  if (a.type == Type::kString || a.type == Type::kBytes)
    return three_way(a.text.compare(b.text), 0);
  if (a.type != Type::kDouble) return three_way(a.raw, b.raw);
  const auto x = std::bit_cast<double>(a.raw);
  const auto y = std::bit_cast<double>(b.raw);
  if (std::isnan(x) || std::isnan(y)) return three_way(std::isnan(x), std::isnan(y));
  return three_way(x, y);
}

ModelValue random_value(const ColumnSchema& column, std::uint64_t domain, Random& random) {
  if (column.nullable && random.chance(12)) return ModelValue::of(column.type, Value::null());
  constexpr std::int64_t kMin32 = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
  switch (column.type) {
    case Type::kBool:
      return ModelValue::of(column.type, Value::boolean(random.chance(50)));
    case Type::kInt32:
    case Type::kDate:
      return ModelValue::of(
          column.type,
          Value::from_raw(column.type, random_integer(domain, random, kMin32, kMax32)));
    case Type::kDouble:
      return ModelValue::of(column.type, Value::real(random_double(domain, random)));
    case Type::kString:
    case Type::kBytes: {
      const std::string text = random_text(domain, random);
      return ModelValue::of(column.type, Value::from_bytes(column.type, text));
    }
    default:
      return ModelValue::of(
          column.type,
          Value::from_raw(column.type,
                          random_integer(domain, random, std::numeric_limits<std::int64_t>::min(),
                                         std::numeric_limits<std::int64_t>::max())));
  }
}

}  // namespace flugs::test
