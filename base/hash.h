#pragma once

#include <xxhash.h>

#include <cstdint>
#include <string_view>

namespace flugs {

/// Mixes all bits of `x` into all bits of the result (a bijection; the finaliser of MurmurHash3
/// with David Stafford's constants, variant 13).
constexpr std::uint64_t mix64(std::uint64_t x) noexcept {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9u;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebu;
  x ^= x >> 31;
  return x;
}

/// A bijection of 32 bits (the finaliser of MurmurHash3).
constexpr std::uint32_t mix32(std::uint32_t x) noexcept {
  x ^= x >> 16;
  x *= 0x85ebca6bu;
  x ^= x >> 13;
  x *= 0xc2b2ae35u;
  x ^= x >> 16;
  return x;
}

/// Hash of a 32-bit payload whose upper half alone distinguishes all values: entries of a HashIndex
/// under it need no comparison with the stored value.
constexpr std::uint64_t exact_hash32(std::int32_t value) noexcept {
  return std::uint64_t{mix32(static_cast<std::uint32_t>(value))} << 32;
}

/// Hash of a payload of any fixed-width type.
constexpr std::uint64_t hash_integer(std::int64_t value) noexcept {
  return mix64(static_cast<std::uint64_t>(value) + 0x9e3779b97f4a7c15u);
}

inline std::uint64_t hash_text(std::string_view text) noexcept {
  return XXH3_64bits(text.data(), text.size());
}

constexpr std::uint64_t kHashOfNull = 0x6e756c6c6e756c6cu;

/// Hash of a key of several columns from the hashes of the columns, in order.
constexpr std::uint64_t combine_hashes(std::uint64_t first, std::uint64_t second) noexcept {
  return mix64(first * 0x9e3779b97f4a7c15u + second);
}

}  // namespace flugs
