#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace flugs::bench {

/// A histogram of durations in nanoseconds, log-linear: each power of two is cut into 128 equal
/// buckets, so that a percentile is at most 0.4 % off. Values above 2^42 - 1 ns (73 minutes) count
/// as that. Adding costs a shift and an increment and never allocates.
///
/// Thread-safety: one per thread, merged afterwards.
class Histogram {
 public:
  void add(std::uint64_t ns) noexcept {
    ++buckets_[index_of(ns)];
    ++count_;
    if (ns > max_) max_ = ns;
  }
  void merge(const Histogram& other) noexcept {
    for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }

  std::uint64_t count() const noexcept { return count_; }
  /// Exact, 0 when empty.
  std::uint64_t max() const noexcept { return max_; }
  /// The smallest value that is not below `fraction` (0 to 1) of all, within 0.4 %; 0 when empty.
  std::uint64_t percentile(double fraction) const noexcept;

 private:
  static constexpr unsigned kSubBits = 7;  // 2^7 buckets each power of two: 1/128 wide, 1/256 off
  static constexpr unsigned kValueBits = 42;
  static constexpr std::uint64_t kValueMax = (std::uint64_t{1} << kValueBits) - 1;
  static constexpr std::size_t kBuckets = (std::size_t{kValueBits} - kSubBits + 1) << kSubBits;

  static constexpr std::size_t index_of(std::uint64_t value) noexcept {
    if (value > kValueMax) value = kValueMax;
    if (value < (std::uint64_t{2} << kSubBits)) return static_cast<std::size_t>(value);
    const unsigned shift = static_cast<unsigned>(std::bit_width(value)) - kSubBits - 1;
    return (std::size_t{shift} << kSubBits) + static_cast<std::size_t>(value >> shift);
  }
  static constexpr std::uint64_t middle_of(std::size_t index) noexcept {
    if (index < (std::size_t{2} << kSubBits)) return index;
    const unsigned shift = static_cast<unsigned>(index >> kSubBits) - 1;
    const std::uint64_t low = (index - (std::size_t{shift} << kSubBits)) << shift;
    return low + ((std::uint64_t{1} << shift) >> 1);
  }

  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
  std::array<std::uint64_t, kBuckets> buckets_{};
};

}  // namespace flugs::bench
