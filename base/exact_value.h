#pragma once

#include <cstdint>
#include <optional>

#include "flugs/value.h"

namespace flugs {

/// Values that a column stores as they are: those of its type and scale. `scale` is 0 for all types
/// but decimals.
class OwnKinds {
 public:
  constexpr OwnKinds(Type type, std::uint8_t scale) noexcept
      : with_scale_(ValueKind{type, scale, true}.word()),
        in_column_(Value::kind_in_column(type).word()) {}

  /// False for NULL.
  constexpr bool has(const Value& value) const noexcept {
    const std::uint32_t word = value.kind().word();
    return word == with_scale_ || word == in_column_;
  }

 private:
  std::uint32_t with_scale_;
  std::uint32_t in_column_;
};

/// The value of a column of that type and scale that equals `value` exactly; nothing if there is
/// none. Every call that takes a value for a column converts it by this rule:
///
///   to                      from
///   int32, int64            integers; decimals without a fraction
///   decimal                 integers and decimals that need no more digits after the point
///   double                  integers of up to 53 bits
///   timestamp               dates (midnight)
///   bytes                   strings
///   any                     its own type, and NULL
///
/// A result that does not fit 32 or 64 bits does not exist, nor does a decimal of a scale above 18.
/// Decimals come back without a scale of
/// their own (Value::decimal_units), text as a view of the same bytes.
std::optional<Value> exact_value(const Value& value, Type type, std::uint8_t scale) noexcept;

/// Multiplies by 10^digits, or divides for digits < 0; false: the result is not exact, and `units`
/// is unspecified.
bool scale_up(std::int64_t& units, int digits) noexcept;

}  // namespace flugs
