#include "bench/scaling/scaling_model.h"

#include <algorithm>
#include <cmath>

namespace flugs::bench {

ScalingPoint predict(const ScalingInputs& inputs, unsigned cores, CommitClock clock) {
  ScalingPoint point;
  point.cores = cores;
  const double n = cores;
  const double near = std::min(cores, inputs.cores_per_socket) - 1.0;
  const double far = n - 1 - near;
  point.line_ns = cores < 2 ? 0 : (near * inputs.line_ns + far * inputs.remote_line_ns) / (n - 1);
  // If two cores use a line alike, the other one had it last in half of all cases; if n cores do,
  // in (n - 1) / n.
  point.lines = inputs.lines_of_two * 2 * (n - 1) / n;
  double think_ns = inputs.transaction_ns + point.lines * point.line_ns;
  if (clock == CommitClock::kProcessors) {
    think_ns += inputs.processor_clock_ns;
    point.per_second = n * 1e9 / think_ns;
    return point;
  }
  // A transaction that begins must read the clock's line again if any other core has committed
  // since.
  const double is_changed = 1 - std::pow(1 - inputs.write_share, n - 1);
  think_ns += is_changed * point.line_ns;
  const double demand_ns = inputs.write_share * point.line_ns + is_changed * inputs.line_read_ns;
  double queue = 0;
  double residence_ns = 0;
  double per_ns = 0;
  for (unsigned i = 1; i <= cores; ++i) {
    residence_ns = demand_ns * (1 + queue);
    per_ns = i / (think_ns + residence_ns);
    queue = per_ns * residence_ns;
  }
  point.clock_ns = residence_ns + is_changed * point.line_ns;
  point.per_second = per_ns * 1e9;
  point.bound = demand_ns > 0 ? 1e9 / demand_ns : 0;
  return point;
}

}  // namespace flugs::bench
