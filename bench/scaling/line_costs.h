#pragma once

#include <cstdint>

#include "flugs/status.h"

namespace flugs::bench {

/// The cost of a cache line that two processors of this machine share. Medians of many short
/// stretches, so that other work on the machine matters little.
struct LineCosts {
  double rmw_own_ns = 0;     ///< a read-modify-write of a line that no other thread uses
  double rmw_shared_ns = 0;  ///< one of two threads that do nothing else, on the same line
  double transfer_ns = 0;    ///< until the other processor sees what one has stored
  double read_time_ns = 0;   ///< reading the time-stamp counter, in order with all before and after
  std::uint64_t times_told = 0;  ///< how often one processor told the other its time
  std::uint64_t backwards = 0;   ///< how often that was later than what the other one read then
};

/// Takes about `seconds`. Fails with kInvalidArgument (there is one processor only).
Result<LineCosts> measure_line_costs(double seconds);

}  // namespace flugs::bench
