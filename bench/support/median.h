#pragma once

#include <vector>

namespace flugs::bench {

/// The mean of the two middle values if their number is even; 0 of nothing.
double median(std::vector<double> values);

}  // namespace flugs::bench
