#include "bench/support/histogram.h"

#include <algorithm>
#include <cmath>

namespace flugs::bench {

std::uint64_t Histogram::percentile(double fraction) const noexcept {
  if (count_ == 0) return 0;
  const auto rank = static_cast<std::uint64_t>(std::ceil(fraction * static_cast<double>(count_)));
  const std::uint64_t wanted = std::clamp<std::uint64_t>(rank, 1, count_);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= wanted) return std::min(middle_of(i), max_);
  }
  return max_;
}

}  // namespace flugs::bench
