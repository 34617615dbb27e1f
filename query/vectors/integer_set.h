#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace flugs::query {

/// A set of integers that many values are looked up in: of an IN-list.
class IntegerSet {
 public:
  IntegerSet() = default;
  /// Values may occur more than once.
  explicit IntegerSet(std::vector<std::int64_t> values);

  bool contains(std::int64_t value) const noexcept;
  /// out[i] is 1 if the set contains values[i], else 0.
  void find(const std::int64_t* values, std::size_t count, std::int64_t* out) const noexcept;

 private:
  /// A set has a bit for each number from its least value to its greatest, if these are fewer than
  /// kBitsPerValue for each value, or fewer than kBitsMin.
  static constexpr std::uint64_t kBitsPerValue = 64;
  static constexpr std::uint64_t kBitsMin = std::uint64_t{1} << 16;

  /// From the least value on. A smaller value is far behind the greatest one.
  std::uint64_t place_of(std::int64_t value) const noexcept {
    return static_cast<std::uint64_t>(value) - static_cast<std::uint64_t>(least_);
  }
  bool has_bit(std::int64_t value) const noexcept;
  bool has_slot(std::int64_t value) const noexcept;
  std::size_t slot_of(std::int64_t value) const noexcept;
  void fill_bits(const std::vector<std::int64_t>& values);
  void fill_slots(const std::vector<std::int64_t>& values);

  std::int64_t least_ = 0;
  std::uint64_t span_ = 0;           ///< the greatest value minus the least, plus one; 0: no value
  std::vector<std::uint64_t> bits_;  ///< empty: slots are used
  // A hash table, half full at most. A slot without a value has the set's least value, which is
  // found by itself.
  std::vector<std::int64_t> slots_;
};

}  // namespace flugs::query
