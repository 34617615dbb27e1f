#pragma once

#include <cstdint>
#include <string>

#include "base/check.h"
#include "base/types.h"
#include "flugs/value.h"

namespace flugs::query {

/// A type and the scale that a decimal needs.
struct DataType {
  Type type = Type::kInt64;
  std::uint8_t scale = 0;
  friend bool operator==(DataType, DataType) = default;
};

using flugs::Lane;
using flugs::lane_of;
constexpr Lane lane_of(DataType type) noexcept { return lane_of(type.type); }

/// The greatest scale of a decimal.
inline constexpr unsigned kScaleMax = 18;

constexpr bool is_integer(DataType t) noexcept { return is_integer_type(t.type); }
constexpr bool is_exact(DataType t) noexcept {
  return is_integer(t) || facts_of(t.type).family == Family::kDecimal;
}
constexpr bool is_number(DataType t) noexcept {
  return is_exact(t) || facts_of(t.type).family == Family::kReal;
}
constexpr bool is_time(DataType t) noexcept { return is_time_type(t.type); }

inline std::string to_string(DataType t) {
  std::string text(flugs::to_string(t.type));
  if (t.type == Type::kDecimal) text += "(" + std::to_string(t.scale) + ")";
  return text;
}

/// 10^exponent, exponent 0 to kScaleMax.
constexpr std::int64_t power_of_ten(unsigned exponent) noexcept {
  FLUGS_DCHECK(exponent <= kScaleMax);
  std::int64_t power = 1;
  for (unsigned i = 0; i < exponent; ++i) power *= 10;
  return power;
}

static_assert(power_of_ten(kScaleMax) == 1'000'000'000'000'000'000);

/// Whether values of both types compare as integers, but count in different units: exact numbers of
/// different scales, dates and timestamps.
constexpr bool has_other_unit(DataType a, DataType b) noexcept {
  if (is_time(a) && is_time(b)) return a.type != b.type;
  return is_exact(a) && is_exact(b) && a.scale != b.scale;
}
/// For two such types: whether the first one's unit is the smaller one.
constexpr bool is_finer(DataType a, DataType b) noexcept {
  FLUGS_DCHECK(has_other_unit(a, b));
  return is_time(a) ? facts_of(a.type).unit_us < facts_of(b.type).unit_us : a.scale > b.scale;
}
/// The number of units of the finer type in one unit of the other.
constexpr std::int64_t unit_ratio(DataType a, DataType b) noexcept {
  FLUGS_DCHECK(has_other_unit(a, b));
  if (is_time(a)) {
    const std::int64_t of_a = facts_of(a.type).unit_us;
    const std::int64_t of_b = facts_of(b.type).unit_us;
    return of_a > of_b ? of_a / of_b : of_b / of_a;
  }
  return power_of_ten(a.scale > b.scale ? unsigned(a.scale) - b.scale
                                        : unsigned(b.scale) - a.scale);
}

}  // namespace flugs::query
