#include "bench/support/histogram.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>

#include "bench/support/random.h"

namespace flugs::bench {

TEST_CASE("an empty histogram has zero for everything", "[histogram]") {
  const Histogram histogram;
  REQUIRE(histogram.count() == 0);
  REQUIRE(histogram.max() == 0);
  REQUIRE(histogram.percentile(0.5) == 0);
}

TEST_CASE("small values are exact", "[histogram]") {
  Histogram histogram;
  for (std::uint64_t value = 1; value <= 100; ++value) histogram.add(value);
  REQUIRE(histogram.percentile(0.5) == 50);
  REQUIRE(histogram.percentile(0.9) == 90);
  REQUIRE(histogram.percentile(0.99) == 99);
  REQUIRE(histogram.percentile(1) == 100);
  REQUIRE(histogram.max() == 100);
}

TEST_CASE("no single value is off by more than one per cent, from nanoseconds to minutes",
          "[histogram]") {
  Random random(1);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t value = random.next() >> (22 + random.below(42));
    Histogram histogram;
    histogram.add(value);
    // A second, larger one, so that the maximum does not stand in for the value.
    histogram.add(value * 4 + 1000);
    const auto found = static_cast<double>(histogram.percentile(0.5));
    REQUIRE(std::abs(found - static_cast<double>(value)) <= 0.01 * static_cast<double>(value));
    if (i >= 2000) i += 97;  // a histogram is large: sample
  }
}

TEST_CASE("merging is the same as adding to one", "[histogram]") {
  Random random(2);
  Histogram one;
  Histogram left;
  Histogram right;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t value = random.below(10'000'000);
    one.add(value);
    (i % 3 == 0 ? left : right).add(value);
  }
  left.merge(right);
  REQUIRE(left.count() == one.count());
  REQUIRE(left.max() == one.max());
  for (const double fraction : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1.0})
    REQUIRE(left.percentile(fraction) == one.percentile(fraction));
}

TEST_CASE("values beyond the largest bucket count as the largest, the maximum stays exact",
          "[histogram]") {
  Histogram histogram;
  histogram.add(~std::uint64_t{0});
  REQUIRE(histogram.count() == 1);
  REQUIRE(histogram.max() == ~std::uint64_t{0});
  REQUIRE(histogram.percentile(0.5) >= (std::uint64_t{1} << 41));
}

}  // namespace flugs::bench
