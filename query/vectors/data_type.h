#pragma once

#include <cstdint>
#include <string>

#include "flugs/value.h"

namespace flugs::query {

/// A type and the scale that a decimal needs.
struct DataType {
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
  friend bool operator==(DataType, DataType) = default;
};

/// How values lie in memory: payloads, doubles, views of text.
enum class Lane : std::uint8_t { kInt, kReal, kText };

constexpr Lane lane_of(Type type) noexcept {
  if (type == Type::kDouble) return Lane::kReal;
  return type == Type::kString || type == Type::kBytes ? Lane::kText : Lane::kInt;
}
constexpr Lane lane_of(DataType type) noexcept { return lane_of(type.type); }

constexpr bool is_integer(DataType t) noexcept {
  return t.type == Type::kInt32 || t.type == Type::kInt64;
}
constexpr bool is_exact(DataType t) noexcept { return is_integer(t) || t.type == Type::kDecimal; }
constexpr bool is_number(DataType t) noexcept { return is_exact(t) || t.type == Type::kDouble; }
constexpr bool is_time(DataType t) noexcept {
  return t.type == Type::kDate || t.type == Type::kTimestamp;
}

inline std::string to_string(DataType t) {
  std::string text(flugs::to_string(t.type));
  if (t.type == Type::kDecimal) text += "(" + std::to_string(t.scale) + ")";
  return text;
}

/// 10^exponent, exponent 0 to 18.
constexpr std::int64_t power_of_ten(unsigned exponent) noexcept {
  std::int64_t power = 1;
  for (unsigned i = 0; i < exponent; ++i) power *= 10;
  return power;
}

inline constexpr std::int64_t kMicrosecondsPerDay = 86'400'000'000;

/// Whether values of both types compare as integers, but count in different units: exact numbers of
/// different scales, dates and timestamps.
constexpr bool has_other_unit(DataType a, DataType b) noexcept {
  if (is_time(a) && is_time(b)) return a.type != b.type;
  return is_exact(a) && is_exact(b) && a.scale != b.scale;
}
/// For two such types: whether the first one's unit is the smaller one.
constexpr bool is_finer(DataType a, DataType b) noexcept {
  return is_time(a) ? a.type == Type::kTimestamp : a.scale > b.scale;
}
/// The number of units of the finer type in one unit of the other.
constexpr std::int64_t unit_ratio(DataType a, DataType b) noexcept {
  if (is_time(a)) return kMicrosecondsPerDay;
  return power_of_ten(a.scale > b.scale ? unsigned(a.scale) - b.scale
                                        : unsigned(b.scale) - a.scale);
}

}  // namespace flugs::query
