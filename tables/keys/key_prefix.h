#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>

#include "base/check.h"
#include "base/types.h"
#include "flugs/value.h"

namespace flugs::engine {

/// The first eight bytes of a key, in a form whose byte order is the order of keys: its columns one
/// after the other, where no value of a column is the beginning of another. Numbers near 0 are
/// short, so that a key of several small numbers fits completely (docs/format.md §10). The full
/// comparison decides what does not fit. Index runs store prefixes: the prefix of a key never
/// changes, not even when a column's type does (columns::keeps_payloads).
class KeyPrefix {
 public:
  /// Adds the value, checked and normalised, of a column of that type.
  void add(const Value& v, Type column) noexcept {
    if (v.is_null()) return add_null(column);
    return lane_of(column) == Lane::kText ? add_text(v.as_string()) : add_payload(v.raw(), column);
  }
  void add_null(Type column) noexcept { put(0, lane_of(column) == Lane::kReal ? 8 : 1); }
  /// The same for a value of fixed width that is not NULL.
  void add_payload(std::int64_t raw, Type column) noexcept {
    FLUGS_DCHECK(lane_of(column) != Lane::kText);
    if (lane_of(column) == Lane::kReal) return put(ordered(raw), 8);
    add_integer(raw);
  }
  void add_integer(std::int64_t v) noexcept {
    // Numbers from 0 up, and from -1 down, are in classes by their length.
    static constexpr Leads kUp = {96, 96, 32, 8, 1, 1, 1, 1, 1};
    static constexpr Leads kDown = {4, 4, 4, 1, 1, 1, 1, 1, 1};
    static constexpr std::uint64_t kFirstUp = 19;  // below: 0 for NULL, 18 for those below 0
    // Every class has first bytes of its own, and there are as many as a byte has room for.
    static_assert(kFirstUp + std::accumulate(kUp.begin(), kUp.end(), 0u) - 1 <= 0xFF);
    static_assert(std::accumulate(kDown.begin(), kDown.end(), 0u) <= kFirstUp - 1);
    if (v >= 0) return put_in_class(static_cast<std::uint64_t>(v), kUp, kFirstUp, 0);
    put_in_class(~static_cast<std::uint64_t>(v), kDown, kFirstUp - 1, ~std::uint64_t{0});
  }
  void add_text(std::string_view text) noexcept {
    for (const char c : text) {
      if (used_ >= kPrefixBytes) break;
      const auto byte = static_cast<unsigned char>(c);
      if (byte <= kEscape) put(kEscape, 1);
      put(byte, 1);
    }
    put(kEnd, 1);
  }

  /// The prefix of a whole key; for the first columns alone, the least prefix of keys that begin
  /// with them.
  std::uint64_t bits() const noexcept { return bits_; }
  /// The greatest prefix of keys that begin with the columns added so far.
  std::uint64_t greatest() const noexcept {
    return used_ >= kPrefixBytes ? bits_ : bits_ | (~std::uint64_t{0} >> (8 * used_));
  }
  /// Whether everything fitted: then exactly the keys that begin so have prefixes from bits() to
  /// greatest().
  bool is_whole() const noexcept { return used_ <= kPrefixBytes; }
  /// Whether further columns change nothing.
  bool is_full() const noexcept { return used_ >= kPrefixBytes; }

 private:
  /// How many first bytes there are for numbers of one byte, of two and so on.
  using Leads = std::array<std::uint8_t, 9>;
  static constexpr std::size_t kPrefixBytes = 8;
  // In texts: 0 is NULL, kEnd ends a text, kEscape precedes the bytes from 0 to itself.
  static constexpr std::uint8_t kEnd = 1;
  static constexpr std::uint8_t kEscape = 2;

  /// `bytes` is 1 to 8; what `value` does not fill is 0.
  void put(std::uint64_t value, std::size_t bytes) noexcept {
    FLUGS_DCHECK(bytes >= 1 && bytes <= 8 && (bytes == 8 || value >> (8 * bytes) == 0));
    const std::size_t room = used_ < kPrefixBytes ? kPrefixBytes - used_ : 0;
    used_ += bytes;
    if (room == 0) return;
    bits_ |= bytes <= room ? value << (8 * (room - bytes)) : value >> (8 * (bytes - room));
  }
  // `v` is counted from the beginning of its class. `turn` inverts all bits of numbers below 0,
  // whose first bytes descend.
  void put_in_class(std::uint64_t v, const Leads& leads, std::uint64_t first,
                    std::uint64_t turn) noexcept {
    std::uint64_t lead = 0;
    std::size_t rest = 0;
    for (; rest < 8 && v >> (8 * rest) >= leads[rest]; ++rest) {
      v -= std::uint64_t{leads[rest]} << (8 * rest);
      lead += leads[rest];
    }
    const std::uint64_t kept = rest == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * rest)) - 1;
    if (rest < 8) lead += v >> (8 * rest);
    put(turn == 0 ? first + lead : first - lead, 1);
    if (rest > 0) put((v ^ turn) & kept, rest);
  }
  // Inverts the sign bit, and all other bits of numbers below 0; NaN is behind all. Never 0.
  static std::uint64_t ordered(std::int64_t raw) noexcept {
    const auto bits = static_cast<std::uint64_t>(raw);
    if (std::isnan(std::bit_cast<double>(raw))) return ~std::uint64_t{0};
    return (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);
  }

  std::uint64_t bits_ = 0;  // the bytes that fit, from the uppermost on
  std::size_t used_ = 0;    // bytes that all columns need
};

}  // namespace flugs::engine
