#pragma once

#include <string>

#include "bench/support/histogram.h"
#include "tools/support/text_table.h"

namespace flugs::tools {

/// A percentile for people, the largest with fraction 1; "-" when nothing was measured.
inline std::string format_percentile(const bench::Histogram& latency, double fraction) {
  if (latency.count() == 0) return "-";
  return format_ns(fraction >= 1 ? latency.max() : latency.percentile(fraction));
}

}  // namespace flugs::tools
