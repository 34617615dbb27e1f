#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "bench/support/random.h"
#include "flugs/value.h"

namespace flugs::bench {

inline constexpr std::size_t kRestartColumns = 4;
using RestartRow = std::array<Value, kRestartColumns>;

/// The content of the restart benchmark's table r(c1, c2, c3, c4). Column j has D distinct values,
/// a seeded bijection of {0 .. D-1} into the integers. Row i has value number i for i < D; later
/// rows have uniformly drawn values. Every value is a pure function of (j, i), so any answer can be
/// checked.
class RestartData {
 public:
  RestartData(std::uint64_t distinct, std::uint64_t seed, Type type) noexcept
      : distinct_(distinct), type_(type) {
    for (std::size_t column = 0; column < kRestartColumns; ++column)
      keys_[column] = mix64(mix64(seed) + column);
  }

  Type type() const noexcept { return type_; }

  /// Which of the column's values row `row` of the bulk load holds.
  std::uint64_t ordinal(std::size_t column, std::uint64_t row) const noexcept {
    if (row < distinct_) return row;
    return (mix64(keys_[column] ^ row) >> 32) * distinct_ >> 32;
  }
  /// Which one row `serial` of the load under which the process is killed holds: one in sixteen is
  /// a value beyond the D, perhaps new.
  std::uint64_t load_ordinal(std::size_t column, std::uint64_t serial) const noexcept {
    const std::uint64_t hash = mix64(~keys_[column] ^ mix64(serial));
    if ((hash & 15) == 0) return distinct_ + (hash >> 4 & 0xfffff);
    return (hash >> 32) * distinct_ >> 32;
  }
  std::int64_t integer(std::size_t column, std::uint64_t ordinal) const noexcept {
    const std::uint32_t mixed = mix32(static_cast<std::uint32_t>(ordinal), keys_[column]);
    const std::int64_t narrow = static_cast<std::int32_t>(mixed);
    return type_ == Type::kInt32 ? narrow : narrow * 0x1001;  // their sums are int64, too
  }
  Value value(std::size_t column, std::uint64_t ordinal) const noexcept {
    return Value::from_raw(type_, integer(column, ordinal));
  }
  void row(std::uint64_t row, RestartRow& out) const noexcept {
    for (std::size_t column = 0; column < kRestartColumns; ++column)
      out[column] = value(column, ordinal(column, row));
  }
  void load_row(std::uint64_t serial, RestartRow& out) const noexcept {
    for (std::size_t column = 0; column < kRestartColumns; ++column)
      out[column] = value(column, load_ordinal(column, serial));
  }

  /// Primary keys: of a row of the bulk load, and of one of the load under which it is killed.
  static Value id(std::uint64_t row) noexcept {
    return Value::int64(static_cast<std::int64_t>(row));
  }
  static Value load_id(std::uint64_t serial) noexcept {
    return Value::int64(static_cast<std::int64_t>(serial | std::uint64_t{1} << 62));
  }

  /// The value of c1 that is asked for, as its ordinal.
  std::uint64_t wanted_ordinal() const noexcept {
    return (mix64(keys_[0] + 1) >> 32) * distinct_ >> 32;
  }

 private:
  std::uint64_t distinct_;
  Type type_;
  std::array<std::uint64_t, kRestartColumns> keys_{};
};

}  // namespace flugs::bench
