#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "flugs/value.h"

namespace flugs::engine {

/// The first eight bytes of a key in a form whose byte order is the order of keys: per nullable
/// column a byte that puts NULL first, then integers big-endian with the sign bit turned, doubles
/// likewise, text with 0 escaped. What does not fit is left to the full comparison. Stored in index
/// runs: what it gives for a key never changes.
class KeyPrefix {
 public:
  /// `was_int32`: the column has become int64 since; what is stored is of before.
  void add(const Value& v, bool nullable, bool was_int32) noexcept {
    if (nullable) byte(v.is_null() ? 0 : 1);
    if (v.is_null()) return;
    switch (v.type()) {
      case Type::kBool:
        byte(static_cast<std::uint8_t>(v.raw()));
        break;
      case Type::kInt32:
      case Type::kDate:
        integer(static_cast<std::uint64_t>(v.raw()) ^ 0x80000000u, 4);
        break;
      case Type::kDouble:
        real(v);
        break;
      case Type::kString:
      case Type::kBytes:
        text(v.as_string());
        break;
      case Type::kInt64:
        if (was_int32) return narrowed(v.raw());
        [[fallthrough]];
      default:
        integer(static_cast<std::uint64_t>(v.raw()) ^ (std::uint64_t{1} << 63), 8);
    }
  }
  std::uint64_t bits() const noexcept {
    return used_ == 0 ? 0 : bits_ << (8 * (kPrefixBytes - used_));
  }

 private:
  static constexpr std::size_t kPrefixBytes = 8;

  void byte(std::uint8_t b) noexcept {
    if (used_ == kPrefixBytes) return;
    bits_ = (bits_ << 8) | b;
    ++used_;
  }
  void integer(std::uint64_t v, int bytes) noexcept {
    for (int i = bytes - 1; i >= 0; --i) byte(static_cast<std::uint8_t>(v >> (8 * i)));
  }
  // As an int32's. What is beyond these is behind, or before, all that begin with the last of them.
  void narrowed(std::int64_t v) noexcept {
    if (v == static_cast<std::int32_t>(v)) {
      integer(static_cast<std::uint64_t>(v) ^ 0x80000000u, 4);
    } else {
      integer(v < 0 ? 0 : ~std::uint64_t{0}, static_cast<int>(kPrefixBytes));
    }
  }
  void real(const Value& v) noexcept {
    auto bits = static_cast<std::uint64_t>(v.raw());
    if (std::isnan(v.as_double()))
      bits = ~std::uint64_t{0};
    else if ((bits >> 63) != 0)
      bits = ~bits;
    else
      bits |= std::uint64_t{1} << 63;
    integer(bits, 8);
  }
  void text(std::string_view t) noexcept {
    for (const char c : t) {
      if (used_ == kPrefixBytes) return;
      byte(static_cast<std::uint8_t>(c));
      if (c == 0) byte(0xFF);
    }
    byte(0);
    byte(0);
  }

  std::uint64_t bits_ = 0;
  std::size_t used_ = 0;
};

}  // namespace flugs::engine
