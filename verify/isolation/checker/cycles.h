#pragma once

#include <cstdint>
#include <vector>

#include "verify/isolation/checker/dependencies.h"

namespace flugs::isolation {

/// Transactions in a circle: each comes before the next, and the last before the first.
struct Cycle {
  struct Step {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool is_real_time = false;     ///< `from` was answered before `to` began
    std::uint32_t dependency = 0;  ///< else: position in Dependencies::edges
  };
  Anomaly anomaly = Anomaly::kG0;
  bool in_real_time = false;  ///< with a step of real time
  std::vector<Step> steps;
};

/// Cycles that a level forbids: one for each knot of connected transactions, the shortest that a
/// bounded search finds there; with `reports_allowed`, also cycles that the level allows. No knot
/// is missed: only the length and kind of the cycle found in it depend on the search.
///
/// Snapshot isolation forbids each cycle without two adjacent anti-dependencies (Fekete et al.,
/// TODS 2005). If each transaction has a start and a commit, and each dependency is an arc between
/// the two of these that it orders, then these cycles are the cycles of a graph: the search is for
/// no more than that.
std::vector<Cycle> find_cycles(const History& history, const Dependencies& dependencies,
                               Level level, bool reports_allowed);

}  // namespace flugs::isolation
