#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "bench/scan/scan_data.h"
#include "bench/support/json.h"

namespace flugs::bench {

/// The expected results of the scan benchmark's queries, added up from the rows as they are made:
/// it shares nothing with the measured database.
class ScanTotals {
 public:
  explicit ScanTotals(const ScanData& data) : data_(&data), a_((data.distinct() + 63) / 64) {}

  void add(const ScanRow& row);
  /// Adds the totals of other rows of the same data.
  void add(const ScanTotals& other);

  /// By the name of each query, its rows: an array of arrays, as tools/duckdb gives them.
  Json expected() const;

 private:
  /// As SQL has it: NULL for no row.
  struct Sum {
    std::int64_t sum = 0;
    std::uint64_t rows = 0;

    void add(std::int64_t value) noexcept {
      sum += value;
      ++rows;
    }
    void add(const Sum& other) noexcept {
      sum += other.sum;
      rows += other.rows;
    }
    Json json() const { return rows == 0 ? Json() : Json(sum); }
  };
  struct Extremes {
    std::int32_t min = std::numeric_limits<std::int32_t>::max();
    std::int32_t max = std::numeric_limits<std::int32_t>::min();

    void add(const Extremes& other) noexcept {
      min = std::min(min, other.min);
      max = std::max(max, other.max);
    }
    Json json() const { return min > max ? Json({nullptr, nullptr}) : Json({min, max}); }
  };
  static constexpr std::size_t kGreatest = 10;

  void add_greatest(std::int32_t value);
  std::uint64_t distinct_a() const noexcept;

  const ScanData* data_;
  std::array<Sum, kScanIntegers> sums_;
  std::array<Sum, 3> below_;  ///< of b where a is below 1, 10, 50 %
  Sum of_text_;               ///< of b where s is the wanted text
  std::array<Sum, kScanLowDistinct> by_low_;
  std::array<Sum, kScanTexts> by_text_;
  std::vector<std::uint64_t> a_;  ///< a bit for each value of a: whether a row has it
  Extremes of_a_;
  Extremes of_b_below_;  ///< of b where a is below 10 %
  std::uint64_t in_range_ = 0;
  std::vector<ScanRow> found_;          ///< where a is the wanted value
  std::vector<std::int32_t> greatest_;  ///< of a, the least of them first
};

}  // namespace flugs::bench
