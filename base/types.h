#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flugs/value.h"

namespace flugs {

/// How values of a type lie in memory: 64-bit integers, doubles, views of bytes.
enum class Lane : std::uint8_t { kInt, kReal, kText };

/// Types of one family compute and compare with each other.
enum class Family : std::uint8_t { kTruth, kInteger, kReal, kDecimal, kTime, kText };

/// All that the engine knows of a type without looking at a value.
struct TypeFacts {
  Type type;  ///< that the row is of; 0 in row 0
  std::string_view name;
  Family family;
  Lane lane;
  std::uint8_t payload_bits;   ///< 1 unsigned; 32 or 64 with a sign; 0 for text
  std::uint8_t cell_bits_min;  ///< the narrowest cell of a row that holds values itself; 0 for text
  std::uint8_t entry_bytes;    ///< of an entry in a dictionary; part of the pool format
  bool is_always_normal;       ///< two equal values never have different payloads
  std::int64_t unit_us;        ///< the unit of a time, in microseconds; else 0
};

inline constexpr std::uint8_t kIntegerCellBitsMin = 24;

/// Row i is of the type with the number i. Row 0 stands for numbers that are no type.
inline constexpr std::array<TypeFacts, 10> kTypeFacts = {{
    {Type{}, "unknown", Family::kInteger, Lane::kInt, 64, kIntegerCellBitsMin, 16, false, 0},
    {Type::kBool, "bool", Family::kTruth, Lane::kInt, 1, 1, 8, false, 0},
    {Type::kInt32, "int32", Family::kInteger, Lane::kInt, 32, kIntegerCellBitsMin, 8, true, 0},
    {Type::kInt64, "int64", Family::kInteger, Lane::kInt, 64, kIntegerCellBitsMin, 16, true, 0},
    {Type::kDouble, "double", Family::kReal, Lane::kReal, 64, 64, 16, false, 0},
    {Type::kDecimal, "decimal", Family::kDecimal, Lane::kInt, 64, kIntegerCellBitsMin, 16, true, 0},
    {Type::kDate, "date", Family::kTime, Lane::kInt, 32, kIntegerCellBitsMin, 8, true,
     86'400'000'000},
    {Type::kTimestamp, "timestamp", Family::kTime, Lane::kInt, 64, 64, 16, true, 1},
    {Type::kString, "string", Family::kText, Lane::kText, 0, 0, 32, true, 0},
    {Type::kBytes, "bytes", Family::kText, Lane::kText, 0, 0, 32, true, 0},
}};
static_assert(
    [] {
      for (std::size_t i = 0; i < kTypeFacts.size(); ++i)
        if (static_cast<std::size_t>(kTypeFacts[i].type) != i) return false;
      return true;
    }(),
    "a row stands at the number of its type");
static_assert(kTypeFacts.size() == static_cast<std::size_t>(Type::kBytes) + 1);

/// Every type, in the order of their numbers.
inline constexpr auto kAllTypes = [] {
  std::array<Type, kTypeFacts.size() - 1> types{};
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<Type>(i + 1);
  return types;
}();

constexpr bool is_known_type(Type type) noexcept {
  return type != Type{} && static_cast<std::size_t>(type) < kTypeFacts.size();
}
constexpr const TypeFacts& facts_of(Type type) noexcept {
  return kTypeFacts[is_known_type(type) ? static_cast<std::size_t>(type) : 0];
}

constexpr Lane lane_of(Type type) noexcept { return facts_of(type).lane; }
constexpr bool is_text_type(Type type) noexcept { return lane_of(type) == Lane::kText; }
constexpr bool is_integer_type(Type type) noexcept {
  return facts_of(type).family == Family::kInteger;
}
constexpr bool is_time_type(Type type) noexcept { return facts_of(type).family == Family::kTime; }
/// Whether payloads have 32 bits with a sign.
constexpr bool is_narrow_type(Type type) noexcept { return facts_of(type).payload_bits == 32; }

/// Whether a column of type `from` can become one of type `to` with the same numbers.
constexpr bool may_stand_for(Type from, Type to) noexcept {
  return from == to || (from == Type::kInt32 && to == Type::kInt64);
}

}  // namespace flugs
