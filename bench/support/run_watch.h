#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace flugs::bench {

/// Looks at the users of a run now and then while they work.
struct RunWatch {
  double seconds_all = 0;                   ///< of the run
  std::function<bool()> has_failed;         ///< a user has: the run ends
  std::function<std::uint64_t()> executed;  ///< transactions of all users so far
  /// Told the seconds gone and the seconds in all; returning false ends the run. May be empty.
  std::function<bool(double, double)> progress;

  /// Until `seconds` have passed since `begin_ns`. `tps_by_second`, unless null, gets a point each
  /// whole second.
  void wait(std::uint64_t begin_ns, double seconds, double seconds_before,
            std::vector<double>* tps_by_second) const;
};

}  // namespace flugs::bench
