#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "flugs/value.h"

namespace flugs {

/// A decimal as a plain pair: 12.34 is {1234, 2}. Decimals are equal if their numbers are: {125, 1}
/// equals {1250, 2}.
struct Decimal {
  std::int64_t units = 0;
  std::uint8_t scale = 0;
  friend constexpr bool operator==(const Decimal& a, const Decimal& b) noexcept {
    if (a.scale < b.scale) return b == a;
    std::int64_t left = a.units;
    for (unsigned excess = a.scale - b.scale; excess > 0 && left != 0; --excess) {
      if (left % 10 != 0) return false;
      left /= 10;
    }
    return left == b.units;
  }
  operator Value() const noexcept {  // NOLINT(google-explicit-constructor)
    return Value::decimal(units, scale);
  }
};

namespace detail {

constexpr std::uint16_t bit_of(Type type) noexcept {
  return static_cast<std::uint16_t>(1u << static_cast<unsigned>(type));
}
template <typename... Types>
constexpr std::uint16_t bits_of(Types... types) noexcept {
  return static_cast<std::uint16_t>((bit_of(types) | ...));
}

/// Says which types of columns may be read as T, and how. Only optionals and Value read NULL.
template <typename T>
struct Reads;

template <>
struct Reads<bool> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kBool);
  static constexpr const char* kName = "bool";
  static bool of(const Value& v) noexcept { return v.as_bool(); }
};
template <>
struct Reads<std::int32_t> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kInt32);
  static constexpr const char* kName = "int32";
  static std::int32_t of(const Value& v) noexcept { return v.as_int32(); }
};
template <>
struct Reads<std::int64_t> {
  static constexpr std::uint16_t kTypes = bits_of(Type::kInt32, Type::kInt64);
  static constexpr const char* kName = "int64";
  static std::int64_t of(const Value& v) noexcept { return v.as_int64(); }
};
template <>
struct Reads<double> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kDouble);
  static constexpr const char* kName = "double";
  static double of(const Value& v) noexcept { return v.as_double(); }
};
template <>
struct Reads<Decimal> {
  static constexpr std::uint16_t kTypes = bits_of(Type::kDecimal, Type::kInt32, Type::kInt64);
  static constexpr const char* kName = "Decimal";
  static Decimal of(const Value& v) noexcept { return {v.raw(), v.scale()}; }
};
/// A view of the stored bytes; see Row for how long it is valid.
template <>
struct Reads<std::string_view> {
  static constexpr std::uint16_t kTypes = bits_of(Type::kString, Type::kBytes);
  static constexpr const char* kName = "string_view";
  static std::string_view of(const Value& v) noexcept { return v.as_string(); }
};
template <>
struct Reads<std::string> {
  static constexpr std::uint16_t kTypes = bits_of(Type::kString, Type::kBytes);
  static constexpr const char* kName = "string";
  static std::string of(const Value& v) { return std::string(v.as_string()); }
};
template <>
struct Reads<std::chrono::sys_days> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kDate);
  static constexpr const char* kName = "sys_days";
  static std::chrono::sys_days of(const Value& v) noexcept { return v.as_date(); }
};
template <>
struct Reads<std::chrono::year_month_day> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kDate);
  static constexpr const char* kName = "year_month_day";
  static std::chrono::year_month_day of(const Value& v) noexcept { return v.as_date(); }
};
template <>
struct Reads<std::chrono::sys_time<std::chrono::microseconds>> {
  static constexpr std::uint16_t kTypes = bit_of(Type::kTimestamp);
  static constexpr const char* kName = "sys_time<microseconds>";
  static std::chrono::sys_time<std::chrono::microseconds> of(const Value& v) noexcept {
    return v.as_timestamp();
  }
};
template <>
struct Reads<Value> {
  static constexpr std::uint16_t kTypes = 0xFFFF;
  static constexpr const char* kName = "Value";
  static Value of(const Value& v) noexcept { return v; }
};
template <typename T>
struct Reads<std::optional<T>> {
  static constexpr std::uint16_t kTypes = Reads<T>::kTypes;
  static constexpr const char* kName = Reads<T>::kName;
  static std::optional<T> of(const Value& v) {
    return v.is_null() ? std::nullopt : std::optional<T>(Reads<T>::of(v));
  }
};

template <typename T>
inline constexpr bool kTakesNull = false;
template <>
inline constexpr bool kTakesNull<Value> = true;
template <typename T>
inline constexpr bool kTakesNull<std::optional<T>> = true;

/// What a checked getter asks for: columns of some types, and whether NULL is an answer.
struct Wanted {
  std::uint16_t types = 0;
  bool takes_null = false;
  const char* name = "";  ///< of the C++ type

  template <typename T>
  static constexpr Wanted of() noexcept {
    return {Reads<T>::kTypes, kTakesNull<T>, Reads<T>::kName};
  }
  constexpr bool admits(Type type) const noexcept { return (types & bit_of(type)) != 0; }
};

}  // namespace detail

/// A C++ type of the values of a whole column, side by side (ScanBatch, query::ResultBatch).
template <typename T>
concept LaneType =
    std::same_as<T, std::int64_t> || std::same_as<T, double> || std::same_as<T, std::string_view>;

namespace detail {
template <LaneType T>
constexpr const char* lane_name() noexcept {
  if constexpr (std::same_as<T, std::int64_t>) return "int64";
  if constexpr (std::same_as<T, double>) return "double";
  return "string_view";
}
/// Types whose columns can be read as T.
template <LaneType T>
constexpr std::uint16_t lane_types() noexcept {
  constexpr std::uint16_t kTexts = bits_of(Type::kString, Type::kBytes);
  if constexpr (std::same_as<T, double>) return bit_of(Type::kDouble);
  if constexpr (std::same_as<T, std::string_view>) return kTexts;
  return static_cast<std::uint16_t>(~(bit_of(Type::kDouble) | kTexts));
}
template <LaneType T>
constexpr Wanted wanted_lane() noexcept {
  return {lane_types<T>(), true, lane_name<T>()};
}
}  // namespace detail

/// A C++ type that getters can give: bool, std::int32_t, std::int64_t (of int32, too), double,
/// Decimal (of integers, too), std::string_view, std::string, std::chrono::sys_days,
/// std::chrono::year_month_day, std::chrono::sys_time<std::chrono::microseconds>, Value (of every
/// type), and std::optional of any of these.
template <typename T>
concept Readable = requires { detail::Reads<T>::kTypes; };

static_assert(Readable<std::optional<std::string>> && !Readable<float> && !Readable<std::uint64_t>);
static_assert(std::is_trivially_copyable_v<Decimal>);
static_assert(Decimal{125, 1} == Decimal{1250, 2} && Decimal{0, 3} == Decimal{} &&
              Decimal{125, 1} != Decimal{1251, 2} && Decimal{125, 1} != Decimal{125, 2});
// A column has exactly one type of lane.
static_assert((detail::lane_types<std::int64_t>() ^ detail::lane_types<double>() ^
               detail::lane_types<std::string_view>()) == 0xFFFF);
// An int32 column reads as int64, never the other way round.
static_assert(detail::Wanted::of<std::int64_t>().admits(Type::kInt32) &&
              !detail::Wanted::of<std::int32_t>().admits(Type::kInt64));

}  // namespace flugs
