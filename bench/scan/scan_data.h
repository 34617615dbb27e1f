#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/support/random.h"

namespace flugs::bench {

inline constexpr std::uint32_t kScanIntegers = 4;                 ///< a, b, c, d
inline constexpr std::uint32_t kScanColumns = kScanIntegers + 2;  ///< and lc, s
inline constexpr std::array<std::string_view, kScanColumns> kScanColumnNames = {"a", "b",  "c",
                                                                                "d", "lc", "s"};
inline constexpr std::uint32_t kScanLowDistinct = 100;
inline constexpr std::uint32_t kScanTexts = 1000;

/// A row of the scan benchmark's table, its text as an ordinal.
struct ScanRow {
  std::array<std::int32_t, kScanIntegers> integers{};
  std::int32_t low = 0;
  std::uint32_t text = 0;

  friend auto operator<=>(const ScanRow&, const ScanRow&) = default;
};

/// The content of the scan benchmark's table r(a, b, c, d, lc, s), and the constants of its
/// queries. The four integers are uniform over {0 .. D-1} and independent of each other; the first
/// D rows have each of these values once, so that D is exact. `lc` has 100 values, `s` 1000 names
/// of goods of 9 to 30 letters. Every value is a pure function of its row.
class ScanData {
 public:
  /// 1 <= distinct <= rows, distinct below 2^31.
  ScanData(std::uint64_t rows, std::uint64_t distinct, std::uint64_t seed);

  std::uint64_t rows() const noexcept { return rows_; }
  std::uint64_t distinct() const noexcept { return distinct_; }
  void row(std::uint64_t row, ScanRow& out) const noexcept;
  std::string_view text(std::uint32_t ordinal) const noexcept { return texts_[ordinal]; }

  /// `a` is below the result in `percent` percent of the rows.
  std::int32_t below(std::uint32_t percent) const noexcept {
    return static_cast<std::int32_t>(std::max<std::uint64_t>(distinct_ * percent / 100, 1));
  }
  /// The value of `a` that the point query asks for.
  std::int32_t wanted() const noexcept {
    return static_cast<std::int32_t>((mix64(keys_[0] + 1) >> 32) * distinct_ >> 32);
  }
  std::uint32_t wanted_text() const noexcept {
    return static_cast<std::uint32_t>((mix64(keys_[0] + 2) >> 32) * kScanTexts >> 32);
  }
  /// `a` is from range_low() to range_high() in one row of 10,000.
  std::int32_t range_low() const noexcept { return static_cast<std::int32_t>(distinct_ / 3); }
  std::int32_t range_high() const noexcept {
    const std::uint64_t values = std::max<std::uint64_t>(distinct_ / 10'000, 1);
    return static_cast<std::int32_t>(distinct_ / 3 + values - 1);
  }

 private:
  std::uint64_t rows_;
  std::uint64_t distinct_;
  std::array<std::uint64_t, kScanIntegers + 1> keys_{};
  std::array<Permutation, kScanIntegers> first_;  ///< of the values in the first D rows
  std::array<std::string, kScanTexts> texts_;
};

}  // namespace flugs::bench
